import type { Clock } from '../../core/clock.js';
import type { LimitedRun } from '../../sync/waiting/limit-concurrency.js';
import type { MaintenanceContext, MaintenanceTask } from './maintenance-context.js';

const HOUR_MS = 3_600_000;

/** Runs the work once an hour. Work that failed or was given up is due again at the next check. */
export function hourly(clock: Clock, work: MaintenanceTask): MaintenanceTask {
  let nextAt = Number.NEGATIVE_INFINITY;
  return async function* () {
    if (clock.monotonic() < nextAt) return;
    yield* work();
    nextAt = clock.monotonic() + HOUR_MS;
  };
}

/**
 * Runs a task in turns with those of other schemas. Returns false if it was given up because the process no longer leads a feed of
 * the schema: a newer release may have migrated it.
 */
export async function runInTurns(
  task: MaintenanceTask,
  limit: LimitedRun,
  isLeader: MaintenanceContext['isLeader'],
  signal: AbortSignal,
): Promise<boolean> {
  const turns = task();
  for (;;) {
    const turn = await limit(async () => (isLeader() ? turns.next() : null), { signal });
    if (turn === null) return false;
    if (turn.done) return true;
  }
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
