import { CommandFailure, EXIT } from './exit.js';

/**
 * Runs work whose signal aborts on the first SIGTERM or SIGINT. If the work does not end in time, it rejects with exit code 0,
 * because nothing depends on an orderly end. A second SIGINT ends the process immediately.
 * @param timeoutMs maximum time to stop, milliseconds
 * @param onStop called with the first signal
 */
export async function untilStopped(
  work: (signal: AbortSignal) => Promise<void>,
  timeoutMs: number,
  onStop: (name: NodeJS.Signals) => void = () => {},
): Promise<void> {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<never>((_, reject) => {
    stop.signal.addEventListener('abort', () => {
      const failure = new CommandFailure(
        `not stopped within ${timeoutMs / 1000} s of the signal; exiting anyway`,
        EXIT.done,
      );
      timer = setTimeout(() => reject(failure), timeoutMs);
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

/** Maximum time for an interrupted command to stop, milliseconds. */
const INTERRUPTED_MS = 1_500;

const EXIT_CODES = { SIGINT: EXIT.interrupted, SIGTERM: 143 } as const;

/** Runs the work of a command. Returns the exit code of the signal that interrupts it, or null. Failures after a signal are ignored. */
export async function untilInterrupted(work: (signal: AbortSignal) => Promise<void>): Promise<number | null> {
  let exitCode: number | null = null;
  const onStop = (name: NodeJS.Signals) => {
    exitCode = name === 'SIGTERM' ? EXIT_CODES.SIGTERM : EXIT_CODES.SIGINT;
  };
  await untilStopped(work, INTERRUPTED_MS, onStop).catch((error) => {
    if (exitCode === null) throw error;
  });
  return exitCode;
}

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
