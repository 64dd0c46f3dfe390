import { DecoratorHandler, type Dispatcher, errors, Pool } from 'undici';

/** The proxy closed the connection instead of answering a CONNECT. */
class TunnelClosed extends Error {
  readonly code = 'PROXY_CLOSED';
  constructor() {
    super('the proxy closed the connection before it answered');
  }
}

/**
 * Opens connections to a proxy. If the proxy closes one without answering the CONNECT, the request fails. Otherwise undici
 * would treat the error as that of a used connection and retry at once without end, even after the request was cancelled.
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
