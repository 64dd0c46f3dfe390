import { WaitingLine, type WaitOptions } from '../../core/waiting-line.js';

/** Runs work as soon as fewer than the maximum are running. Rejects like the work, or if the signal aborts before its start. */
export type LimitedRun = <T>(work: () => Promise<T>, options?: WaitOptions) => Promise<T>;

export function limitConcurrency(maximum: number): LimitedRun {
  const line = new WaitingLine();
  let running = 0;
  return async (work, options = {}) => {
    options.signal?.throwIfAborted();
    if (running < maximum) running += 1;
    else await line.wait(options);
    try {
      return await work();
    } finally {
      if (!line.admitNext()) running -= 1; // else the admitted caller takes its place
    }
  };
}
