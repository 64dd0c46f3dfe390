import type { Clock } from '../../core/clock.js';
import { createServiceConnections } from '../../daemon/service-connections.js';
import type { ServiceClient } from '../../service/client.js';
import type { ServiceSettings } from '../../settings/settings.js';
import { AnotherService } from '../../storage/feeds/lease.js';
import type { FeedService } from '../../sync/ports/index.js';
import type { FeedCommandContext } from './with-feed.js';

/** Kinds of failures that every request of a command would meet. */
export const SERVICE_FAILURES: ReadonlySet<string> = new Set([
  'connection',
  'proxy',
  'certificate',
  'api_key',
  'http_401',
  'http_403',
  'redirect',
]);

/** Opens the service for one command, within the configured rate, and closes it after the work. */
export async function withService<T>(
  settings: ServiceSettings,
  connections: number,
  clock: Clock,
  work: (service: FeedService, client: ServiceClient) => Promise<T>,
): Promise<T> {
  const services = createServiceConnections(connections, clock);
  const { service, client, close } = services.open(settings);
  return work(service, client).finally(() => close().then(services.close));
}

/**
 * Opens the service of a feed like {@link withService}.
 * @throws AnotherService if the feed belongs to another address: runs of two services must not be mixed
 */
export async function withServiceOf<T>(
  { settings: { service: settings }, feed }: FeedCommandContext<'service'>,
  connections: number,
  clock: Clock,
  work: (service: FeedService) => Promise<T>,
): Promise<T> {
  if (feed.baseUrl !== settings.baseUrl)
    throw new AnotherService({ name: feed.name, baseUrl: settings.baseUrl }, feed.baseUrl);
  return withService(settings, connections, clock, work);
}
