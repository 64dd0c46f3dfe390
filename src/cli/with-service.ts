import { RecognitionClient, type RecognitionClientOptions } from '../service/client.js';
import { createDispatcher } from '../service/dispatcher.js';
import { limitRate } from '../service/rate-limit.js';
import type { ServiceSettings } from '../settings.js';
import type { FeedRow } from '../storage/feeds.js';
import type { FeedService } from '../sync/ports.js';
import { CommandFailure } from './exit.js';
import { largestAnswerBytes } from './memory.js';
import { packageVersion } from './version.js';

/**
 * Opens a client of the service as the settings describe it.
 * @param connections maximum number of requests at once
 */
export function openClient(
  settings: ServiceSettings,
  connections: number,
  onRequest?: RecognitionClientOptions['onRequest'],
) {
  const dispatcher = createDispatcher({ proxy: settings.readProxy(), connections });
  const client = new RecognitionClient({
    baseUrl: settings.baseUrl,
    apiKey: settings.readApiKey,
    requestTimeoutMs: settings.requestTimeoutMs,
    maxResponseBytes: largestAnswerBytes(),
    dispatcher,
    userAgent: `scanfeed/${packageVersion()}`,
    onRequest,
  });
  const close = async () => {
    await client.close();
    await dispatcher.destroy();
  };
  return { client, close };
}

/** Opens a client for one command and closes it when the work is over. */
export async function withClient<T>(
  settings: ServiceSettings,
  connections: number,
  work: (client: RecognitionClient) => Promise<T>,
): Promise<T> {
  const { client, close } = openClient(settings, connections);
  return work(client).finally(close);
}

/**
 * The service as a feed's own, within the configured rate.
 * @throws CommandFailure where the feed belongs to another address: its runs must not be mixed with another service's
 */
export async function withService<T>(
  settings: ServiceSettings,
  feed: FeedRow,
  connections: number,
  work: (service: FeedService) => Promise<T>,
): Promise<T> {
  requireOwnService(settings, feed);
  return withClient(settings, connections, (client) => work(limitRate(client, settings.requestsPerSecond)));
}

/** @throws CommandFailure if the feed belongs to another address */
export function requireOwnService({ baseUrl }: ServiceSettings, feed: FeedRow): void {
  if (feed.baseUrl === baseUrl) return;
  throw new CommandFailure(
    `the feed ${feed.name} belongs to ${feed.baseUrl}, and SCANFEED_BASE_URL is ${baseUrl}: if the service has moved, run \`scanfeed adopt\``,
  );
}
