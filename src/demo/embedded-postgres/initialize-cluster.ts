import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CommandFailure } from '../../cli/context/exit.js';
import { type Cluster, NAME, processOptions, programFailure } from './cluster.js';

/** The superuser's password, in the form that psql reads (`PGPASSFILE`). */
const passwordFile = ({ directory }: Cluster): string => join(directory, 'pgpass');

/** Returns the superuser's password, chosen the first time. */
export async function keepPassword(cluster: Cluster): Promise<string> {
  const file = passwordFile(cluster);
  const kept = existsSync(file) ? (await readFile(file, 'utf8')).trim().split(':')[4] : null;
  if (kept) return kept;
  if (existsSync(cluster.data)) {
    throw new CommandFailure(
      `The password of the demo's database is lost (${file}). Remove the folder ${cluster.directory} to start over.`,
    );
  }
  const password = randomBytes(24).toString('base64url');
  await writeFile(file, `127.0.0.1:*:*:${NAME}:${password}\n`, { mode: 0o600 });
  return password;
}

/**
 * Creates the data directory with an empty database. It is moved into place once it is complete, since this process may be
 * killed. The collation is the same on every machine: by code point, with Unicode's upper and lower case.
 */
export async function initializeCluster(cluster: Cluster, password: string, flags: readonly string[]): Promise<void> {
  const { bin, data, user, version } = cluster;
  const staging = `${data}.new`;
  await rm(staging, { recursive: true, force: true });
  await mkdir(staging, { mode: 0o700 });
  if (user !== null) await chown(staging, user.uid, user.gid);
  const run = (program: string, ...args: readonly string[]) =>
    promisify(execFile)(join(bin, program), args, processOptions(cluster, staging));
  // The server has no local sockets. With a password for them, initdb would require the password in a file.
  const login = [`--username=${NAME}`, '--auth-local=reject', '--auth-host=scram-sha-256'];
  // Version 17 is the first with a collation of its own.
  const collation = Number.parseInt(version, 10) < 17 ? [] : ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  try {
    await run('initdb', '-D', staging, ...login, '--encoding=UTF8', '--locale=C', ...collation, ...flags);
    const single = run('postgres', '--single', '-D', staging, '-c', 'exit_on_error=on', 'postgres');
    single.child.stdin?.end(`ALTER ROLE ${NAME} PASSWORD '${password}'\nCREATE DATABASE ${NAME}\n`);
    await single;
    await rename(staging, data);
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    throw programFailure("PostgreSQL's data could not be created", stderr || message);
  }
}
