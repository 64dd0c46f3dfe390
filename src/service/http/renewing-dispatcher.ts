import { DecoratorHandler, Dispatcher, errors } from 'undici';
import type { Clock } from '../../core/clock.js';

/** Time after which new requests get new connections, milliseconds: a host name that moves is noticed. */
const LIFETIME_MS = 60_000;

export interface RenewingOptions {
  /** Opens an agent for the requests to an origin. */
  readonly open: (origin: string) => Dispatcher;
  /** Returns the error to report for one of a request to an origin. */
  readonly describeError: (error: Error, origin: string) => Error;
  readonly clock: Clock;
}

/**
 * Sends requests over agents that are replaced after a minute. A replaced agent ends after its last request. (With its own
 * `clientTtl`, undici 7.30 never sends requests that wait when a connection expires, and it measures by the wall clock.)
 */
export class RenewingDispatcher extends Dispatcher {
  /** The agent for new requests to each origin. */
  readonly #current = new Map<string, { readonly agent: Dispatcher; readonly openedAt: number }>();
  readonly #open = new Set<Dispatcher>();
  #isDestroyed = false;

  constructor(private readonly options: RenewingOptions) {
    super();
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (this.#isDestroyed) throw new errors.ClientDestroyedError();
    return this.#agentFor(String(options.origin)).dispatch(options, handler);
  }

  override async close(): Promise<void> {
    await this.destroy();
  }

  override async destroy(): Promise<void> {
    this.#isDestroyed = true;
    await Promise.all([...this.#open].map((agent) => agent.destroy()));
  }

  #agentFor(origin: string): Dispatcher {
    const current = this.#current.get(origin);
    const now = this.options.clock.monotonic();
    if (current !== undefined && now - current.openedAt < LIFETIME_MS) return current.agent;
    const describe = (error: Error) => this.options.describeError(error, origin);
    const agent = this.options
      .open(origin)
      .compose((dispatch) => (options, handler) => dispatch(options, new ErrorHandler(handler, describe)));
    this.#current.set(origin, { agent, openedAt: now });
    this.#open.add(agent);
    if (current !== undefined) void current.agent.close().then(() => this.#open.delete(current.agent));
    return agent;
  }
}

class ErrorHandler extends DecoratorHandler {
  constructor(
    private readonly handler: Dispatcher.DispatchHandler,
    private readonly describe: (error: Error) => Error,
  ) {
    super(handler);
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    this.handler.onResponseError?.(controller, this.describe(error));
  }
}
