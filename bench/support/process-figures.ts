import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts processor time in hundredths of a second, whatever the kernel's own tick (proc(5)). */
const MS_PER_TICK = 10;

interface ProcessTimes {
  readonly parent: number;
  readonly ownMs: number;
  /** Of children that have ended and were waited for. */
  readonly childrenMs: number;
}

/** Processor time of a process, user and system, milliseconds. */
export function cpuMs(pid: number): number {
  return timesOf(pid)?.ownMs ?? 0;
}

/** The same of a process with all of its children, those that have ended included. */
export function treeCpuMs(root: number): number {
  let sum = timesOf(root)?.childrenMs ?? 0;
  sum += timesOf(root)?.ownMs ?? 0;
  for (const name of readdirSync('/proc')) {
    const times = /^\d+$/.test(name) ? timesOf(Number(name)) : null;
    if (times?.parent === root) sum += times.ownMs + times.childrenMs;
  }
  return sum;
}

export function parentOf(pid: number): number {
  return timesOf(pid)?.parent ?? 0;
}

/** Resident memory, bytes: now, and the most so far. */
export function memoryOf(pid: number): { readonly resident: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? Number.NaN);
  return { resident: kib('VmRSS') * 1024, peak: kib('VmHWM') * 1024 };
}

/** Null: the process is gone. */
function timesOf(pid: number): ProcessTimes | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return null;
  }
  // Field 2 is the command in parentheses, which may hold spaces; field 3 follows.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const field = (number: number) => Number(fields[number - 3]);
  return {
    parent: field(4),
    ownMs: (field(14) + field(15)) * MS_PER_TICK,
    childrenMs: (field(16) + field(17)) * MS_PER_TICK,
  };
}
