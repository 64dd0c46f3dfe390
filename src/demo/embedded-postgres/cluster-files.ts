import { createHash, randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { CommandFailure } from '../../cli/context/exit.js';
import { superuser } from './postmaster.js';
import { canEnter, type ServerUser } from './server-user.js';

export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

export function newPassword(): string {
  return randomBytes(24).toString('base64url');
}

/** Makes a folder that the server's account may pass through, whatever the umask says. */
async function makePassable(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
    await chmod(directory, 0o711);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') throw error;
    throw new CommandFailure(
      `The folder ${directory} is not this user's to write (${code}). Use a checkout of your own, or remove that folder.`,
    );
  }
}

/** Makes an empty folder for a cluster, owned by the server's account alone. */
export async function makeDataDirectory(data: string, user: ServerUser | null): Promise<void> {
  await mkdir(data, { mode: 0o700 });
  if (user !== null) await chown(data, user.uid, user.gid);
}

/** The wanted folder, or where it is closed to the server's account one elsewhere that belongs to the wanted one. */
export async function makePersistentDirectory(wanted: string, user: ServerUser | null): Promise<string> {
  await makePassable(wanted);
  if (await canEnter(wanted, user)) return wanted;
  const key = createHash('sha256').update(wanted).digest('hex').slice(0, 12);
  const parent = user === null ? join(homedir(), '.local', 'state', 'scanfeed') : '/var/lib/scanfeed';
  await makePassable(parent);
  const elsewhere = join(parent, key);
  await makePassable(elsewhere);
  return elsewhere;
}

/**
 * Runs `make` on a folder beside `data` and moves it into place when it is done, so that a `kill -9` on the way leaves no
 * half-made cluster.
 */
export async function makeWhole(
  data: string,
  user: ServerUser | null,
  make: (staging: string) => Promise<void>,
): Promise<void> {
  const staging = `${data}.new`;
  await rm(staging, { recursive: true, force: true });
  await makeDataDirectory(staging, user);
  await make(staging);
  await rename(staging, data);
}

/** The password file, in the form psql reads (`PGPASSFILE`). Made once, readable by its owner alone. */
export async function keepPassword(directory: string, clusterExists: boolean): Promise<string> {
  const file = passwordFile(directory);
  const line = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  const kept = line?.trim().split(':')[4];
  if (kept !== undefined && kept !== '') return kept;
  if (clusterExists)
    throw new CommandFailure(
      `The password of the demo's database is lost (${file}). Remove the folder ${directory} to begin anew.`,
    );
  const password = newPassword();
  await writeFile(file, `127.0.0.1:*:*:${superuser}:${password}\n`, { mode: 0o600 });
  return password;
}

export function passwordFile(directory: string): string {
  return join(directory, 'pgpass');
}
