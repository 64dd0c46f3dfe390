import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Sends SIGKILL to a PostgreSQL server and all its processes, unless it has already ended.
 * @param data its data folder
 */
export async function killServer(data: string): Promise<void> {
  const pidFile = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => null);
  if (pidFile === null) return;
  const postmaster = Number(pidFile.split('\n')[0]);
  const children = await childrenOf(postmaster);
  // The postmaster first, so that it starts no other child.
  for (const pid of [postmaster, ...children]) kill(pid);
}

/** Returns an empty list where the system does not list children; they then end once the postmaster is gone. */
async function childrenOf(pid: number): Promise<readonly number[]> {
  const list = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return list.trim().split(' ').filter(Boolean).map(Number);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
