import { openClient } from '../../daemon/open-client.js';
import type { ServiceClient } from '../../service/client.js';
import { createRateLimit } from '../../service/http/rate-limit.js';
import type { ServiceSettings } from '../../settings/settings.js';
import type { FeedRow } from '../../storage/feeds/feeds.js';
import type { FeedService } from '../../sync/ports/index.js';
import { CommandFailure } from './exit.js';

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

/** Opens a client for one command and closes it after the work. */
export async function withClient<T>(
  settings: ServiceSettings,
  connections: number,
  work: (client: ServiceClient) => Promise<T>,
): Promise<T> {
  const { client, close } = openClient(settings, connections);
  return work(client).finally(close);
}

/**
 * Opens the service of a feed for one command, within the configured rate.
 * @throws CommandFailure if the feed belongs to another address: runs of two services must not be mixed
 */
export async function withService<T>(
  settings: ServiceSettings,
  feed: FeedRow,
  connections: number,
  work: (service: FeedService) => Promise<T>,
): Promise<T> {
  requireOwnService(settings, feed);
  return withClient(settings, connections, (client) => work(createRateLimit(settings.requestsPerSecond)(client)));
}

/** @throws CommandFailure if the feed belongs to another address */
function requireOwnService({ baseUrl }: ServiceSettings, feed: FeedRow): void {
  if (feed.baseUrl === baseUrl) return;
  throw new CommandFailure(
    `the feed ${feed.name} belongs to ${feed.baseUrl}, but the configured base URL is ${baseUrl}; if the service has moved, run \`scanfeed adopt --feed ${feed.name}\``,
  );
}
