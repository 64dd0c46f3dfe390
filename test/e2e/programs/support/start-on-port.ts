import { setTimeout as sleep } from 'node:timers/promises';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../../src/demo/embedded-postgres/index.js';

const TRIES = 20;
const PAUSE_MS = 100;

type Options = Parameters<typeof startEmbeddedPostgres>[0] & { readonly port: number; readonly signal: AbortSignal };

/** Starts a server on this port and no other. Another process may hold it for a moment. */
export async function startOnPort(options: Options): Promise<EmbeddedPostgres> {
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const server = await startEmbeddedPostgres(options);
    if (server.port === options.port) return server;
    await server.stop();
    await sleep(PAUSE_MS, undefined, { signal: options.signal });
  }
  throw new Error(`port ${options.port} is taken`);
}
