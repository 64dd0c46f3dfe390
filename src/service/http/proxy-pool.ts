import { DecoratorHandler, type Dispatcher, errors, Pool } from 'undici';

/** The proxy ended the connection instead of answering a CONNECT. */
class TunnelClosed extends Error {
  readonly code = 'PROXY_CLOSED';
  constructor() {
    super('the proxy closed the connection before it answered');
  }
}

/**
 * Connections to a proxy, on which tunnels are asked for. One that is closed without an answer fails the request it was
 * for: undici takes its own socket errors for those of a connection that had been in use, and would ask again at once and
 * without end, also when nobody waits any more.
 */
export function openProxyPool(origin: URL, options: Pool.Options): Dispatcher {
  return new Pool(origin, options).compose(
    (dispatch) => (request, handler) => dispatch(request, new ClosedTunnelHandler(handler)),
  );
}

class ClosedTunnelHandler extends DecoratorHandler {
  readonly #handler: Dispatcher.DispatchHandler;
  constructor(handler: Dispatcher.DispatchHandler) {
    super(handler);
    this.#handler = handler;
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    this.#handler.onResponseError?.(controller, error instanceof errors.SocketError ? new TunnelClosed() : error);
  }
}
