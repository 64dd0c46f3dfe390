import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandFailure } from '../../cli/context/exit.js';

const WAITS = 600;

/**
 * Waits for the processes that a killed server left behind. They end as soon as they notice; until then they share its
 * memory, and PostgreSQL refuses to start beside them. Only where the system tells (Linux).
 * @param pause some 100 ms
 * @throws {CommandFailure} when they are still there after a minute
 */
export async function waitForOrphans(data: string, pause: () => Promise<unknown>): Promise<void> {
  const block = await sharedMemoryOf(data);
  if (block === null) return;
  for (let waits = 0; await isAttached(block); waits += 1) {
    if (waits === WAITS) {
      throw new CommandFailure(
        `Processes of a PostgreSQL that was killed still run on ${data}. End them (those named postgres), then start again.`,
      );
    }
    await pause();
  }
}

/** The number of the shared memory block, the second of line 7 in PostgreSQL's lock file. */
async function sharedMemoryOf(data: string): Promise<number | null> {
  const lock = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '');
  const id = lock.split('\n')[6]?.trim().split(/\s+/)[1];
  return id === undefined ? null : Number(id);
}

async function isAttached(block: number): Promise<boolean> {
  const table = await readFile('/proc/sysvipc/shm', 'utf8').catch(() => '');
  const [head = [], ...rows] = table.split('\n').map((line) => line.trim().split(/\s+/));
  const [id, attached] = [head.indexOf('shmid'), head.indexOf('nattch')];
  return rows.some((row) => Number(row[id]) === block && Number(row[attached]) > 0);
}
