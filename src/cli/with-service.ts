import { RecognitionClient } from '../service/client.js';
import { createDispatcher } from '../service/dispatcher.js';
import { limitRate } from '../service/rate-limit.js';
import type { ServiceSettings } from '../settings.js';
import type { FeedRow } from '../storage/feed.js';
import type { FeedService } from '../sync/ports.js';
import { CommandFailure } from './exit.js';
import { packageVersion } from './version.js';

/**
 * Opens a client of the service for one command and closes it when the work is over.
 * @param connections requests at once, at most
 * @throws CommandFailure where the feed belongs to another address: its runs must not be mixed with another service's
 */
export async function withService<T>(
  settings: ServiceSettings,
  feed: FeedRow,
  connections: number,
  work: (service: FeedService) => Promise<T>,
): Promise<T> {
  if (feed.baseUrl !== settings.baseUrl) {
    throw new CommandFailure(
      `the feed ${feed.name} belongs to ${feed.baseUrl}, and SCANFEED_BASE_URL is ${settings.baseUrl}: if the service has moved, run \`scanfeed adopt\``,
    );
  }
  const dispatcher = createDispatcher({ proxy: settings.readProxy(), connections });
  const client = new RecognitionClient({
    baseUrl: settings.baseUrl,
    apiKey: settings.readApiKey,
    requestTimeoutMs: settings.requestTimeoutMs,
    dispatcher,
    userAgent: `scanfeed/${packageVersion()}`,
  });
  try {
    return await work(limitRate(client, settings.requestsPerSecond));
  } finally {
    await client.close();
    await dispatcher.destroy();
  }
}
