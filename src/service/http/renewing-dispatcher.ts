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

interface Agent {
  readonly dispatcher: Dispatcher;
  readonly openedAt: number;
  /** Number of its requests that have not ended. */
  requests: number;
}

/**
 * Sends requests over agents that are replaced after a minute. A replaced agent ends after its last request. (With its own
 * `clientTtl`, undici 7.30 never sends requests that wait when a connection expires, and it measures by the wall clock.)
 */
export class RenewingDispatcher extends Dispatcher {
  readonly #agents = new Map<string, Agent>();
  readonly #open = new Set<Agent>();
  #isDestroyed = false;

  constructor(private readonly options: RenewingOptions) {
    super();
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (this.#isDestroyed) throw new errors.ClientDestroyedError();
    const agent = this.#agentFor(String(options.origin));
    return agent.dispatcher.dispatch(options, handler);
  }

  override async close(): Promise<void> {
    await this.destroy();
  }

  override async destroy(): Promise<void> {
    this.#isDestroyed = true;
    await Promise.all([...this.#open].map(({ dispatcher }) => dispatcher.destroy()));
  }

  #agentFor(origin: string): Agent {
    const current = this.#agents.get(origin);
    if (current !== undefined && this.options.clock.monotonic() - current.openedAt < LIFETIME_MS) return current;
    const describe = (error: Error) => this.options.describeError(error, origin);
    const dispatcher = this.options.open(origin).compose((dispatch) => (options, handler) => {
      agent.requests += 1;
      return dispatch(options, new RequestHandler(handler, describe, onEnd));
    });
    const agent: Agent = { dispatcher, openedAt: this.options.clock.monotonic(), requests: 0 };
    const onEnd = () => {
      agent.requests -= 1;
      if (this.#agents.get(origin) !== agent) this.#endUnused(agent);
    };
    this.#agents.set(origin, agent);
    this.#open.add(agent);
    if (current !== undefined) this.#endUnused(current);
    return agent;
  }

  #endUnused(agent: Agent): void {
    if (agent.requests === 0 && this.#open.delete(agent)) void agent.dispatcher.destroy();
  }
}

class RequestHandler extends DecoratorHandler {
  constructor(
    private readonly handler: Dispatcher.DispatchHandler,
    private readonly describe: (error: Error) => Error,
    private readonly onEnd: () => void,
  ) {
    super(handler);
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: Record<string, string | string[]>): void {
    this.handler.onResponseEnd?.(controller, trailers);
    this.onEnd();
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    this.handler.onResponseError?.(controller, this.describe(error));
    this.onEnd();
  }
}
