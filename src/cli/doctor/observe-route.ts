import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { isIPv6, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

export interface NetworkRoute {
  /** `host:port` of the proxy, or null. */
  readonly proxy: string | null;
  /** IP address of the service or the proxy; null if there was no connection. */
  readonly address: string | null;
  readonly tls: { readonly protocol: string; readonly validTo: Date | null } | null;
}

/** A message of undici about its connections (`undici:client:*`). */
interface ConnectionEvent {
  readonly connectParams: { readonly hostname: string; readonly port: string; readonly protocol: string };
  readonly socket?: Socket;
}

export async function observeRoute<T>(
  baseUrl: string,
  work: () => Promise<T>,
): Promise<{ route: NetworkRoute; value: T }> {
  const service = hostAndPort(new URL(baseUrl));
  let route: NetworkRoute = { proxy: null, address: null, tls: null };
  const onConnect = (event: unknown) => {
    const host = hostAndPort((event as ConnectionEvent).connectParams);
    if (host !== service) route = { ...route, proxy: host };
  };
  const onConnected = (event: unknown) => {
    const { socket } = event as ConnectionEvent;
    route = { ...route, address: socket?.remoteAddress ?? route.address, tls: describeTls(socket) ?? route.tls };
  };
  subscribe('undici:client:beforeConnect', onConnect);
  subscribe('undici:client:connected', onConnected);
  try {
    return { value: await work(), route };
  } finally {
    unsubscribe('undici:client:beforeConnect', onConnect);
    unsubscribe('undici:client:connected', onConnected);
  }
}

function describeTls(socket: Socket | undefined): NetworkRoute['tls'] {
  if (!(socket instanceof TLSSocket)) return null;
  const validTo = new Date(socket.getPeerCertificate().valid_to ?? '');
  return { protocol: socket.getProtocol() ?? 'TLS', validTo: Number.isNaN(validTo.getTime()) ? null : validTo };
}

/** An address of IPv6 has brackets in a URL, and none in undici's messages. */
function hostAndPort({ hostname, port, protocol }: ConnectionEvent['connectParams'] | URL): string {
  const host = isIPv6(hostname) ? `[${hostname}]` : hostname;
  return `${host}:${port || (protocol === 'https:' ? '443' : '80')}`;
}
