import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface RunningServer {
  readonly pid: number;
  readonly port: number;
}

/**
 * The server that runs on a data folder, by the lock file PostgreSQL keeps there. After a crash that file may name a
 * process number that now belongs to another program, which would keep PostgreSQL from starting: then it is removed.
 */
export async function findRunningServer(data: string): Promise<RunningServer | null> {
  const lockFile = join(data, 'postmaster.pid');
  const lines = (await readFile(lockFile, 'utf8').catch(() => '')).split('\n');
  // Line 1 is the process number, line 4 the port.
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  // A file that names a dead process is PostgreSQL's own business: it also checks for shared memory left behind.
  if (!Number.isInteger(pid) || pid <= 0 || !isAlive(pid)) return null;
  const command = await commandLine(pid);
  if (command === null || command.includes(data)) return { pid, port };
  await rm(lockFile, { force: true });
  return null;
}

/** A process of another user is not our server: it runs as ourselves, or we are root. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Null where this system does not tell. */
async function commandLine(pid: number): Promise<string | null> {
  try {
    return await readFile(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    const ps = promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)]);
    return ps.then(
      ({ stdout }) => stdout,
      () => null,
    );
  }
}
