import { CommandFailure, EXIT } from './exit.js';

/**
 * Runs work whose signal aborts at the first SIGTERM or SIGINT. Work that has not ended a while after that is left:
 * nothing depends on an orderly end, so that this is said and is no failure. A second SIGINT ends the process at once.
 * @param onStop told of the signal that came first
 */
export async function untilStopped(
  work: (signal: AbortSignal) => Promise<void>,
  patienceMs: number,
  onStop: (name: NodeJS.Signals) => void = () => {},
): Promise<void> {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<never>((_, reject) => {
    stop.signal.addEventListener('abort', () => {
      const failure = new CommandFailure(
        `not stopped within ${patienceMs / 1000} s of the signal; ending all the same`,
        EXIT.done,
      );
      timer = setTimeout(() => reject(failure), patienceMs);
    });
  });
  const onSignal = (name: NodeJS.Signals) => {
    if (stop.signal.aborted && name === 'SIGINT') process.exit(EXIT.interrupted);
    if (!stop.signal.aborted) onStop(name);
    stop.abort();
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  try {
    await Promise.race([work(stop.signal), overdue]);
  } finally {
    clearTimeout(timer);
    process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
  }
}

/** Time for an interrupted command to end in order, milliseconds. */
const INTERRUPTED_MS = 1_500;

/** Runs the work of a command until it ends or is interrupted. Returns whether it was: then its failure does not matter. */
export async function untilInterrupted(work: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
  let interrupted = false;
  const onStop = () => {
    interrupted = true;
  };
  await untilStopped(work, INTERRUPTED_MS, onStop).catch((error) => {
    if (!interrupted) throw error;
  });
  return interrupted;
}

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Ends process 1 of a container on SIGTERM and SIGINT unless another handler is installed. The kernel ignores signals that
 * process 1 does not handle.
 */
export function endOnSignals(process: NodeJS.Process): void {
  if (process.pid !== 1) return;
  for (const [name, exitCode] of Object.entries(EXIT_CODES) as [NodeJS.Signals, number][]) {
    process.on(name, () => {
      if (process.listenerCount(name) === 1) process.exit(exitCode);
    });
  }
}
