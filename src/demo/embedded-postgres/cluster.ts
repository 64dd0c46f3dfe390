import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { CommandFailure } from '../../cli/context/exit.js';
import { copyBinaries, requireBinaries } from './binaries.js';

/** Name of the superuser, and of the database. */
export const NAME = 'scanfeed';

interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/** A database cluster: the location of its files, and the programs and account that run it. */
export interface Cluster {
  /** Folder of the data, the password and the log. */
  readonly directory: string;
  readonly data: string;
  readonly bin: string;
  /** For example `18.4`. */
  readonly version: string;
  readonly user: ServerUser | null;
}

/** Finds the programs and makes the folder of a cluster, in another place if PostgreSQL's account cannot enter `wanted`. */
export async function locateCluster(wanted: string, binariesFrom?: string): Promise<Cluster> {
  const { native, version } = await requireBinaries(binariesFrom);
  // A major version cannot read the files of another.
  const name = `postgres-${Number.parseInt(version, 10)}`;
  const user = await findServerUser(join(wanted, name));
  const directory = await makeDirectory(resolve(wanted), user);
  const isOpen = await canEnter(join(native, 'bin'), user);
  const programs = isOpen ? native : join(directory, `postgresql-${version}`);
  if (!isOpen) await copyBinaries(native, programs);
  const [shownVersion = version] = /^\d+\.\d+/.exec(version) ?? [];
  return { directory, data: join(directory, name), bin: join(programs, 'bin'), version: shownVersion, user };
}

async function makeDirectory(wanted: string, user: ServerUser | null): Promise<string> {
  await mkdir(wanted, { recursive: true });
  if (user === null) return wanted;
  await chmod(wanted, 0o711);
  if (await canEnter(wanted, user)) return wanted;
  const open = `/var/lib/scanfeed-${createHash('sha256').update(wanted).digest('hex').slice(0, 12)}`;
  await mkdir(open, { recursive: true });
  await chmod(open, 0o711);
  return open;
}

/** The account `nobody` of Linux systems. */
const NOBODY: ServerUser = { uid: 65_534, gid: 65_534 };

/** PostgreSQL refuses to run as root. Returns the owner of its data, or `nobody`; null if this process is not root. */
async function findServerUser(data: string): Promise<ServerUser | null> {
  if (process.getuid?.() !== 0) return null;
  const { uid, gid } = existsSync(data) ? await stat(data) : NOBODY;
  return uid === 0 ? NOBODY : { uid, gid };
}

/** Returns whether the account can enter the folder. A checkout below /root, for example, is closed to all others. */
async function canEnter(directory: string, user: ServerUser | null): Promise<boolean> {
  if (user === null) return true;
  return promisify(execFile)('test', ['-x', directory], { cwd: '/', ...user }).then(
    () => true,
    () => false,
  );
}

/** Options for running PostgreSQL's programs. They do not inherit the environment, which may contain secrets and libpq settings. */
export function processOptions({ user }: Cluster, cwd: string) {
  return { cwd, env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' }, ...user };
}

const OWN_SERVER =
  'If you cannot fix that, set DATABASE_URL (TEST_DATABASE_URL for the tests) to a PostgreSQL of your own.';

/** A failure whose reason is the first complaint in a program's output, or all of the output. */
export function programFailure(what: string, output: string, remedy = OWN_SERVER): CommandFailure {
  const reason = /\b(?:FATAL|PANIC|error): +(.*)/.exec(output)?.[1] ?? output.trim();
  return new CommandFailure(`${what}: ${reason}. ${remedy}`);
}
