import { execFile, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdtemp, open, rm, rmdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { withConnection } from './postgres/maintenance.js';

const run = promisify(execFile);

/** Whether this process may mount file systems. */
export const canMount = spawnSync('unshare', ['--mount', 'true']).status === 0;
if (!canMount) console.warn('skipped: a disk of a few megabytes requires Linux and root');

/** A disk with room for one small database. */
export interface SmallDisk {
  /** Moves a database to it, which nobody may be using. */
  takeDatabase(name: string): Promise<unknown>;
  /** Uses all its space. */
  fill(): Promise<void>;
  /** Frees the space that {@link fill} uses. */
  free(): Promise<void>;
  /** Removes it. Its database must be gone. */
  remove(): Promise<void>;
}

/**
 * Mounts a disk in memory for a server. Returns null if the server does not run on this machine.
 * @param url of an administrator
 */
export async function mountSmallDisk(url: string): Promise<SmallDisk | null> {
  const tablespace = `small_disk_${randomBytes(5).toString('hex')}`;
  const query = (sql: string) => withConnection(url, async (client) => (await client.query(sql)).rows);
  const [{ data_directory }] = await query('SHOW data_directory');
  const owner = await stat(data_directory).catch(() => null);
  if (owner === null) return null;
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-disk-'));
  await run('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'scanfeed-test', folder]);
  const ballast = join(folder, 'ballast');
  const unmount = async () => {
    await run('umount', [folder]);
    await rmdir(folder);
  };
  try {
    await chown(folder, owner.uid, owner.gid);
    await query(`CREATE TABLESPACE ${tablespace} LOCATION '${folder}'`);
  } catch (error) {
    await unmount();
    throw error;
  }
  return {
    takeDatabase: (name) => query(`ALTER DATABASE ${name} SET TABLESPACE ${tablespace}`),
    fill: () => fill(ballast),
    free: () => rm(ballast),
    remove: async () => {
      await query(`DROP TABLESPACE ${tablespace}`);
      await unmount();
    },
  };
}

async function fill(path: string): Promise<void> {
  const file = await open(path, 'w');
  const block = Buffer.alloc(4096);
  try {
    for (;;) await file.write(block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    await file.close();
  }
}
