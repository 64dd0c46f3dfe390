import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { CommandFailure } from '../../cli/context/exit.js';

/** The account the server's processes run as. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * PostgreSQL refuses to run as root. Under root it runs as the owner of its data, else as an account every system has;
 * none is created. Null: the server runs as ourselves.
 */
export async function findServerUser(dataDirectory: string | null): Promise<ServerUser | null> {
  if (process.getuid?.() !== 0) return null;
  const owner = dataDirectory === null ? null : await stat(dataDirectory).catch(() => null);
  if (owner !== null && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  for (const name of ['postgres', 'nobody']) {
    const user = await lookUp(name);
    if (user !== null) return user;
  }
  throw new CommandFailure(
    'PostgreSQL does not run as root, and this system has neither a user "postgres" nor "nobody". ' +
      'Run as an ordinary user, or add one: useradd --system postgres',
  );
}

async function lookUp(name: string): Promise<ServerUser | null> {
  const id = async (flag: string) => Number((await promisify(execFile)('id', [flag, name])).stdout.trim());
  try {
    const user = { uid: await id('-u'), gid: await id('-g') };
    return user.uid > 0 && user.gid >= 0 ? user : null;
  } catch {
    return null;
  }
}

/** Whether the account can enter the folder (a checkout below /root, for one, is closed to everybody else). */
export async function canEnter(directory: string, user: ServerUser | null): Promise<boolean> {
  if (user === null) return true;
  for (let path = resolve(directory); ; path = dirname(path)) {
    const { uid, gid, mode } = await stat(path);
    const execute = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & execute) === 0) return false;
    if (path === dirname(path)) return true;
  }
}
