import type { Clock } from '../../core/clock.js';

const HOUR_MS = 3_600_000;

/** Runs the work once an hour. Work that failed is due again at the next check. */
export function hourly(clock: Clock, work: () => Promise<void>): () => Promise<void> {
  let nextAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (clock.monotonic() < nextAt) return;
    await work();
    nextAt = clock.monotonic() + HOUR_MS;
  };
}

/** Leaves the database to the feed: rests after a batch for as long as it took. Throws once the signal has aborted. */
export function createBatchRest(clock: Clock, signal: AbortSignal): () => Promise<void> {
  let since = clock.monotonic();
  return async () => {
    await clock.sleep(clock.monotonic() - since, signal);
    signal.throwIfAborted();
    since = clock.monotonic();
  };
}
