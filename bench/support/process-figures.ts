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
  return treeOf(root).reduce((sum, pid) => {
    const times = timesOf(pid);
    return sum + (times?.ownMs ?? 0) + (times?.childrenMs ?? 0);
  }, 0);
}

/** Resident memory of a process and of all of its children, without files and shared memory, bytes. */
export function privateBytesOfTree(root: number): number {
  return treeOf(root).reduce((sum, pid) => sum + (statusBytes(pid, 'RssAnon') || 0), 0);
}

/** A process and its children. */
function treeOf(root: number): readonly number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return [root, ...pids.map(Number).filter((pid) => timesOf(pid)?.parent === root)];
}

export function parentOf(pid: number): number {
  return timesOf(pid)?.parent ?? 0;
}

/** Resident memory, bytes: now, and the most so far. */
export function memoryOf(pid: number): { readonly resident: number; readonly peak: number } {
  return { resident: statusBytes(pid, 'VmRSS'), peak: statusBytes(pid, 'VmHWM') };
}

/** Returns a figure of a process, bytes; NaN if the process has ended. */
function statusBytes(pid: number, name: string): number {
  let status = '';
  try {
    status = readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {}
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? Number.NaN) * 1024;
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
