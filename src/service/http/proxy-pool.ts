import { DecoratorHandler, type Dispatcher, errors, Pool } from 'undici';
import { ServiceError } from '../errors/service-error.js';

/** The proxy closed the connection instead of answering a CONNECT. */
class TunnelClosed extends Error {
  readonly code = 'PROXY_CLOSED';
  constructor() {
    super('the proxy closed the connection before it responded');
  }
}

type UpgradeArguments = Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestUpgrade']>>;

/**
 * Opens connections to a proxy. If the proxy refuses a CONNECT, the request fails with its status. If it closes the connection
 * without a response, the request fails as well: undici would treat the error as that of a used connection and retry at once
 * without end, even after the request was cancelled.
 */
export function openProxyPool(origin: URL, options: Pool.Options): Dispatcher {
  return new Pool(origin, options).compose(
    (dispatch) => (request, handler) => dispatch(request, new TunnelHandler(handler, origin.host)),
  );
}

class TunnelHandler extends DecoratorHandler {
  constructor(
    private readonly handler: Dispatcher.DispatchHandler,
    private readonly proxy: string,
  ) {
    super(handler);
  }

  onRequestUpgrade(...[controller, status, headers, socket]: UpgradeArguments): void {
    if (status === 200) {
      this.handler.onRequestUpgrade?.(controller, status, headers, socket);
    } else {
      socket.on('error', () => {}).destroy();
      this.handler.onResponseError?.(controller, refusedByProxy(this.proxy, status));
    }
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    this.handler.onResponseError?.(controller, asTunnelError(error));
  }
}

/** Returns the error for a proxy that answered a CONNECT with another status than 200. The key was not sent. @param proxy `host:port` */
function refusedByProxy(proxy: string, status: number): ServiceError {
  const remedy = status === 407 ? 'check user and password in HTTPS_PROXY' : 'check its log and rules, or NO_PROXY';
  const message = `the proxy ${proxy} refused to connect to the service: it returned ${status}; ${remedy}`;
  return new ServiceError('proxy', status === 429 || status >= 500 ? 'retry' : 'hold', message);
}

function asTunnelError(error: Error): Error {
  if (error instanceof errors.SocketError) return new TunnelClosed();
  // The time for the headers of a CONNECT is that for connecting.
  return error instanceof errors.HeadersTimeoutError ? new errors.ConnectTimeoutError() : error;
}
