import type { Clock } from '../core/clock.js';
import { packageVersion } from '../core/package.js';
import { ServiceClient, type ServiceClientOptions } from '../service/client.js';
import { createDispatcher } from '../service/http/dispatcher.js';
import { obeyRetryAfter } from '../service/http/obey-retry-after.js';
import { createRateLimit } from '../service/http/rate-limit.js';
import type { ServiceSettings } from '../settings/settings.js';
import { largestAnswerBytes } from './memory.js';

/** Interval at which the file of a key is read while the service refuses the key, milliseconds. */
const KEY_CHECK_MS = 5_000;

/**
 * Opens services for the feeds of the process. All of them use the same connections, within the same rate of requests.
 * @param connections maximum number of connections to each address
 */
export function createServiceConnections(connections: number, clock: Clock) {
  // The process has one proxy and one rate; the first feed brings them with its other settings.
  let shared: ReturnType<typeof open> | undefined;
  const open = ({ readRoute, requestsPerSecond }: ServiceSettings) => ({
    dispatcher: createDispatcher({ ...readRoute(), readAgain: readRoute.current, connections }),
    limitRate: createRateLimit(requestsPerSecond, clock),
  });
  return {
    open(settings: ServiceSettings, onRequest?: ServiceClientOptions['onRequest']) {
      shared ??= open(settings);
      const client = new ServiceClient({
        baseUrl: settings.baseUrl,
        allowHttp: true, // the settings have checked it
        apiKey: settings.readApiKey,
        requestTimeoutMs: settings.requestTimeoutMs,
        maxResponseBytes: largestAnswerBytes(),
        dispatcher: shared.dispatcher,
        userAgent: `scanfeed/${packageVersion()}`,
        onRequest,
      });
      return {
        /** Sends requests at once. */
        client,
        /** Sends requests at the rate of the settings, and none before the time that the service asked for. */
        service: {
          ...obeyRetryAfter(shared.limitRate(client), clock),
          keyChanged: settings.apiKeyFile === null ? undefined : changeOf(settings.readApiKey, clock),
        },
        /** Cancels its running requests. */
        close: () => client.close(),
      };
    },
    close: async (): Promise<void> => {
      await shared?.dispatcher.destroy();
    },
  };
}

/** Returns a function that resolves when a value differs from what it was at the call, or the signal aborts. */
function changeOf(read: () => Promise<string>, clock: Clock) {
  return async (signal: AbortSignal): Promise<void> => {
    const before = await read();
    while (!signal.aborted && (await read()) === before) await clock.sleep(KEY_CHECK_MS, signal);
  };
}
