import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { RecognitionClient } from '../../service/client.js';
import type { FeedSettings, ServiceSettings } from '../../settings.js';
import type { Clock } from '../../sync/ports.js';
import { withClient } from '../with-service.js';
import { told } from './finding.js';

/** How the first request got to the service. */
export interface Route {
  /** `host:port` of the proxy that was connected to; null: none. */
  readonly proxy: string | null;
  /** Of the service or the proxy; null: no connection came about. */
  readonly address: string | null;
  readonly tls: { readonly protocol: string; readonly validTo: Date | null } | null;
}

/** What was seen of the service. */
export type ServiceExam = Awaited<ReturnType<typeof examineService>>;

/** Reads one entry of the feed from its beginning; nothing is stored. */
export async function examineService(
  service: ServiceSettings,
  { filters }: Pick<FeedSettings, 'filters'>,
  clock: Pick<Clock, 'now' | 'monotonic'>,
) {
  return withClient(service, 1, async (client) => {
    const read = (documentType: string | null) => told(readOne(client, { ...filters, documentType }, clock));
    const { route, value: feed } = await watchRoute(service.baseUrl, () => read(null));
    // Null: no document type is set, or the feed did not answer without one.
    const typed = filters.documentType === null || 'error' in feed ? null : await read(filters.documentType);
    return { baseUrl: service.baseUrl, filters, route, feed, typed };
  });
}

async function readOne(
  client: RecognitionClient,
  filters: FeedSettings['filters'],
  clock: Pick<Clock, 'now' | 'monotonic'>,
) {
  const [begun, sentAt] = [clock.monotonic(), clock.now()];
  const page = await client.readPage({ filters, start: { beginning: true }, limit: 1, markdown: false });
  return {
    tookMs: clock.monotonic() - begun,
    entries: page.items.length,
    serviceDate: page.serviceDate,
    // Wall clock of this machine.
    sentAt,
    receivedAt: clock.now(),
  };
}

/** What undici says of its connections (`undici:client:*`). */
interface ConnectionNews {
  readonly connectParams: { readonly hostname: string; readonly port: string; readonly protocol: string };
  readonly socket?: Socket;
}

/** Does the work and sees by which way it went. */
async function watchRoute<T>(baseUrl: string, work: () => Promise<T>): Promise<{ route: Route; value: T }> {
  const service = hostAndPort(new URL(baseUrl));
  let route: Route = { proxy: null, address: null, tls: null };
  const begun = (news: unknown) => {
    const host = hostAndPort((news as ConnectionNews).connectParams);
    if (host !== service) route = { ...route, proxy: host };
  };
  const connected = (news: unknown) => {
    const { socket } = news as ConnectionNews;
    route = { ...route, address: socket?.remoteAddress ?? route.address, tls: tlsOf(socket) ?? route.tls };
  };
  subscribe('undici:client:beforeConnect', begun);
  subscribe('undici:client:connected', connected);
  try {
    return { value: await work(), route };
  } finally {
    unsubscribe('undici:client:beforeConnect', begun);
    unsubscribe('undici:client:connected', connected);
  }
}

function tlsOf(socket: Socket | undefined): Route['tls'] {
  if (!(socket instanceof TLSSocket)) return null;
  const validTo = new Date(socket.getPeerCertificate().valid_to ?? '');
  return { protocol: socket.getProtocol() ?? 'TLS', validTo: Number.isNaN(validTo.getTime()) ? null : validTo };
}

function hostAndPort({ hostname, port, protocol }: ConnectionNews['connectParams'] | URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;
}
