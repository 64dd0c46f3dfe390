import { randomUUID } from 'node:crypto';

/** Names this process as the holder of a lease: readable, and unique among all processes. */
export function nameHolder(host: string, pid: number): string {
  return `${host}/${pid}/${randomUUID().slice(0, 8)}`;
}

/**
 * Returns whether a holder was a process of this host that has ended. A holder with the id of this process has ended too: the
 * process of a restarted container often gets the same id again.
 */
export function isDeadPredecessor(holder: string, host: string, pid: number): boolean {
  const [itsHost, itsPid = '', tag, ...rest] = holder.split('/');
  if (itsHost !== host || !/^[1-9]\d*$/.test(itsPid) || tag === undefined || rest.length > 0) return false;
  return Number(itsPid) === pid || !isAlive(Number(itsPid));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'; // EPERM: another user's process
  }
}
