import type { Failure } from '../../core/errors.js';

/** Pauses between retries, milliseconds. */
export interface BackoffSettings {
  /** Upper bound of the first pause. */
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Pauses for requests and statements of the feed itself. */
export const FEED_BACKOFF: BackoffSettings = { firstMs: 500, maxMs: 60_000 };

/** Maximum pause after a failure that needs a person (credentials, settings), milliseconds. */
const HOLD_MS = 30_000;
/** Maximum `Retry-After` that is obeyed, milliseconds. */
const RETRY_AFTER_CAP_MS = 3_600_000;

/**
 * Returns the pause after the nth failure in a row (from 1), milliseconds: full jitter over a doubling bound, never shorter than
 * the service's `Retry-After`. Pure.
 */
export function pauseAfter(
  failures: number,
  failure: Pick<Failure, 'action' | 'retryAfterMs'>,
  random: number,
  { firstMs, maxMs }: BackoffSettings = FEED_BACKOFF,
): number {
  const bound = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  const floor = Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_CAP_MS);
  if (failure.action === 'hold') return Math.max(floor, Math.min(HOLD_MS, bound * 4) * (0.5 + random / 2));
  // The jitter is added to Retry-After, or all replicas would return at the same moment.
  return floor > 0 ? floor + random * Math.min(bound, 1000) : random * bound;
}

/**
 * Returns the pause at the end of the feed, milliseconds. It counts from the last poll: a run delivered right after it waits
 * for the interval, but not for the commits of that poll as well. It is at least half of the interval, to spare a service or
 * database that needs longer than the interval. Pure.
 */
export function pauseUntilPoll(intervalMs: number, sincePollMs: number): number {
  return Math.max(intervalMs / 2, intervalMs - sincePollMs);
}
