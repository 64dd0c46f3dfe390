import { rm } from 'node:fs/promises';
import { requireBinaries } from '../../../src/demo/embedded-postgres/binaries.js';
import { startEmbeddedPostgres } from '../../../src/demo/embedded-postgres/index.js';
import type { ServerSettings } from '../../../src/demo/embedded-postgres/server.js';
import { folderInMemory, makeTemporaryFolder } from './temporary-folder.js';

export interface TemporaryPostgres {
  readonly url: string;
  /** For example `18.4`. */
  readonly version: string;
  /** Folder of its files. */
  readonly directory: string;
  /** Stops the server and removes its files. */
  stop(): Promise<void>;
}

/** Fast rather than safe against a power cut. */
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_connections: '200',
  shared_buffers: '128MB',
  // It would start a process in one of a hundred databases twice a second.
  autovacuum: 'off',
};

/**
 * Starts an empty server in a temporary folder, in memory if there is enough. It and its files are gone when this process ends.
 * @param binariesFrom folder with another version of the package in its `node_modules`
 */
export async function startTemporaryPostgres({
  binariesFrom,
  settings = {},
}: {
  readonly binariesFrom?: string | undefined;
  readonly settings?: ServerSettings;
} = {}): Promise<TemporaryPostgres> {
  const { version } = await requireBinaries(binariesFrom);
  const cheapLogins = Number.parseInt(version, 10) >= 16 ? ['--set=scram_iterations=16'] : [];
  const folder = await makeTemporaryFolder(await folderInMemory());
  try {
    const { url, cluster, stop } = await startEmbeddedPostgres({
      directory: folder.path,
      settings: { ...SETTINGS, ...settings },
      initdb: ['--no-sync', ...cheapLogins],
      binariesFrom,
    });
    const remove = async () => {
      await stop();
      // It is another folder if the temporary one is closed to the account that PostgreSQL runs as.
      await rm(cluster.directory, { recursive: true, force: true });
      await folder.remove();
    };
    return { url, version: cluster.version, directory: cluster.directory, stop: remove };
  } catch (error) {
    await folder.remove();
    throw error;
  }
}
