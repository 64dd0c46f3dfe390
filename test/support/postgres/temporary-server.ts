import { join } from 'node:path';
import { findBinaryPackage, prepareBinaries } from '../../../src/demo/embedded-postgres/binaries.js';
import { makeDataDirectory, newPassword } from '../../../src/demo/embedded-postgres/cluster-files.js';
import {
  type Cluster,
  ensureDatabase,
  initialiseCluster,
  type Postmaster,
  startOnFreePort,
  urlOf,
} from '../../../src/demo/embedded-postgres/postmaster.js';
import { findServerUser } from '../../../src/demo/embedded-postgres/server-user.js';
import { makeTemporaryFolder } from './temporary-folder.js';

export interface TemporaryPostgres {
  readonly url: string;
  /** Such as `18.4`. */
  readonly version: string;
  /** Where its files are. */
  readonly directory: string;
  /** Stops the server and removes its files. */
  stop(): Promise<void>;
}

/** Fast rather than safe against a power cut. */
const settings = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_connections: '200',
  shared_buffers: '128MB',
};

/**
 * Starts an empty server in the system's folder for temporary files. It is gone, files and all, when this process ends.
 * @param binariesFrom a folder with another version of the package in its `node_modules`
 */
export async function startTemporaryPostgres(binariesFrom?: string): Promise<TemporaryPostgres> {
  const { signal } = new AbortController();
  const binaryPackage = await findBinaryPackage(binariesFrom);
  const user = await findServerUser(null);
  const folder = await makeTemporaryFolder(user);
  let server: Postmaster | null = null;
  const stop = async () => {
    await server?.stop();
    await folder.remove();
  };
  try {
    const cluster: Cluster = {
      binaries: await prepareBinaries(binaryPackage, user, folder.path),
      user,
      data: folder.data,
      logFile: join(folder.path, 'postgres.log'),
      password: newPassword(),
    };
    await makeDataDirectory(cluster.data, user);
    const cheapLogins = Number(cluster.binaries.major) >= 16 ? ['--set=scram_iterations=16'] : [];
    await initialiseCluster(cluster, ['--no-sync', ...cheapLogins]);
    server = await startOnFreePort(cluster, { preferred: null, settings }, signal);
    const { port, version } = server;
    await ensureDatabase(urlOf(cluster, port, 'postgres'), 'scanfeed');
    return { url: urlOf(cluster, port, 'scanfeed'), version, directory: folder.path, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
