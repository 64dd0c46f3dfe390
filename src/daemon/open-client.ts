import type { Dispatcher } from 'undici';
import { packageVersion } from '../core/package.js';
import { ServiceClient, type ServiceClientOptions } from '../service/client.js';
import { createDispatcher } from '../service/http/dispatcher.js';
import type { ServiceSettings } from '../settings/settings.js';
import { largestAnswerBytes } from './memory.js';

/**
 * Opens a client of the service as the settings describe it, with connections of its own.
 * @param connections maximum number of requests at once
 */
export function openClient(settings: ServiceSettings, connections: number) {
  const dispatcher = createDispatcher({ ...settings.readRoute(), readAgain: settings.readRoute.current, connections });
  const client = createClient(settings, dispatcher);
  const close = async () => {
    await client.close();
    await dispatcher.destroy();
  };
  return { client, close };
}

/** Creates a client of the service as the settings describe it, on connections that other clients may use too. */
export function createClient(
  settings: ServiceSettings,
  dispatcher: Dispatcher,
  onRequest?: ServiceClientOptions['onRequest'],
): ServiceClient {
  return new ServiceClient({
    baseUrl: settings.baseUrl,
    allowHttp: true, // the settings have checked it
    apiKey: settings.readApiKey,
    requestTimeoutMs: settings.requestTimeoutMs,
    maxResponseBytes: largestAnswerBytes(),
    dispatcher,
    userAgent: `scanfeed/${packageVersion()}`,
    onRequest,
  });
}
