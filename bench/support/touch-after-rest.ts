import { setTimeout as sleep } from 'node:timers/promises';

const PAGE_BYTES = 4096;
const PAGES = 16_384;
const REST_MS = 5_000;

/**
 * Processor time of one page of memory that nobody has touched for five seconds, microseconds: some hundredths where
 * memory is left alone, more than one where it is taken back from what rests, as hosts of virtual machines do. A program
 * at rest pays it for each page of its own code and data, as often as it wakes.
 */
export async function touchAfterRest(): Promise<number> {
  const memory = Buffer.alloc(PAGES * PAGE_BYTES, 1);
  touch(memory);
  await sleep(REST_MS);
  const before = process.cpuUsage();
  touch(memory);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / PAGES;
}

function touch(memory: Buffer): void {
  for (let at = 0; at < memory.length; at += PAGE_BYTES) memory[at] = (memory[at] ?? 0) ^ 1;
}
