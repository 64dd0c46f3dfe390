import { readFile } from 'node:fs/promises';

/** Returns the peak resident memory of a process, MiB, as recorded by Linux. */
export async function peakMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}
