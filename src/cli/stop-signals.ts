import { CommandFailure, EXIT } from './exit.js';

/**
 * Runs work whose signal aborts at the first SIGTERM or SIGINT. Work that has not ended a while after that is left:
 * nothing depends on an orderly end. A second SIGINT ends the process at once.
 */
export async function untilStopped(work: (signal: AbortSignal) => Promise<void>, patienceMs: number): Promise<void> {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<never>((_, reject) => {
    stop.signal.addEventListener('abort', () => {
      const failure = new CommandFailure(
        `not stopped within ${patienceMs / 1000} s of the signal; ending all the same`,
      );
      timer = setTimeout(() => reject(failure), patienceMs);
    });
  });
  const onSignal = (name: NodeJS.Signals) => {
    if (stop.signal.aborted && name === 'SIGINT') process.exit(EXIT.interrupted);
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
