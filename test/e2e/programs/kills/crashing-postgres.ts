import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../../src/demo/embedded-postgres/index.js';
import { killServer } from '../support/kill-server.js';

/** A PostgreSQL of our own, safe against crashes (`fsync` is on), that can be made to crash. */
export interface CrashingPostgres {
  readonly url: string;
  /** SIGKILL to all its processes, then a start with recovery on the same port. */
  crash(): Promise<void>;
  /** Stops it and removes its files. */
  remove(): Promise<void>;
}

const RESTART_TRIES = 20;

export async function startCrashingPostgres(signal: AbortSignal): Promise<CrashingPostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'scanfeed-kills-'));
  let server = await startEmbeddedPostgres({ directory, signal });
  const { port, url } = server;
  return {
    url,
    crash: async () => {
      await killServer(join(directory, `postgres-${server.version.split('.')[0]}`));
      await server.stop(); // only tidies up
      server = await restart(directory, port, signal);
    },
    remove: async () => {
      await server.stop();
      for (const folder of new Set([directory, server.directory])) await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The children may need a moment to be gone, and somebody else may hold the port for one. */
async function restart(directory: string, port: number, signal: AbortSignal): Promise<EmbeddedPostgres> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const server = await startEmbeddedPostgres({ directory, port, signal });
      if (server.port === port) return server;
      await server.stop();
      throw new Error(`port ${port} is taken`);
    } catch (error) {
      if (attempt === RESTART_TRIES) throw error;
      await sleep(100, undefined, { signal });
    }
  }
}
