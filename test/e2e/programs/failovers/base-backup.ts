import { chown, copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { PostgresServer } from './postgres-server.js';

/** What a copy of a running server must not contain: its lock file, and its WAL, which the standby receives. */
const SKIPPED = new Set(['postmaster.pid', 'postmaster.opts', 'pg_wal', 'standby.signal', 'postgresql.auto.conf']);

/**
 * Copies a running server's data and password into the empty folder of another one, which becomes its standby.
 * @param replicationPort port on which the standby reaches the primary
 */
export async function copyToStandby(
  primary: PostgresServer,
  standby: PostgresServer,
  replicationPort: number,
): Promise<void> {
  // Start and end of a backup belong to one session.
  const client = new pg.Client({ connectionString: primary.urlOf('postgres') });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query("SELECT pg_backup_start('standby', true)");
    await makeOwned(standby, standby.cluster.data);
    await copyFolder(primary.cluster.data, standby.cluster.data, standby);
    await copyFile(join(primary.cluster.directory, 'pgpass'), join(standby.cluster.directory, 'pgpass'));
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
    const conninfo = `host=127.0.0.1 port=${replicationPort} user=${client.user} password=${client.password} sslmode=disable`;
    await writeOwned(standby, 'backup_label', rows[0]?.labelfile ?? '');
    await writeOwned(standby, 'standby.signal', '');
    await writeOwned(standby, 'postgresql.auto.conf', `primary_conninfo = '${conninfo}'\n`);
    await makeOwned(standby, join(standby.cluster.data, 'pg_wal'));
  } finally {
    await client.end();
  }
}

async function copyFolder(from: string, to: string, owner: PostgresServer): Promise<void> {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (SKIPPED.has(entry.name)) continue;
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) {
      await makeOwned(owner, target);
      await copyFolder(source, target, owner);
    } else if (entry.isFile()) {
      // The server may remove a file that was listed: recovery does without it.
      await copyFile(source, target)
        .then(() => give(owner, target))
        .catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'ENOENT') throw error;
        });
    }
  }
}

async function writeOwned(owner: PostgresServer, name: string, text: string): Promise<void> {
  const path = join(owner.cluster.data, name);
  await writeFile(path, text, { mode: 0o600 });
  await give(owner, path);
}

async function makeOwned(owner: PostgresServer, path: string): Promise<void> {
  await mkdir(path, { mode: 0o700 });
  await give(owner, path);
}

async function give({ cluster: { user } }: PostgresServer, path: string): Promise<void> {
  if (user !== null) await chown(path, user.uid, user.gid);
}
