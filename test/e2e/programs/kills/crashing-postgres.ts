import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unusedPort } from '../../../support/unused-port.js';
import { killServer } from '../support/kill-server.js';
import { startOnPort } from '../support/start-on-port.js';

/** A PostgreSQL of our own, safe against crashes (`fsync` is on), that can be made to crash. */
export interface CrashingPostgres {
  readonly url: string;
  /** SIGKILL to all its processes, then a start with recovery on the same port. */
  crash(): Promise<void>;
  /** Stops it and removes its files. */
  remove(): Promise<void>;
}

export async function startCrashingPostgres(signal: AbortSignal): Promise<CrashingPostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'scanfeed-kills-'));
  const port = await unusedPort();
  let server = await startOnPort({ directory, port, signal });
  const { url } = server;
  return {
    url,
    crash: async () => {
      await killServer(server.cluster.data);
      await server.stop(); // ends its child process
      server = await startOnPort({ directory, port, signal });
    },
    remove: async () => {
      await server.stop();
      for (const folder of [directory, server.cluster.directory]) await rm(folder, { recursive: true, force: true });
    },
  };
}
