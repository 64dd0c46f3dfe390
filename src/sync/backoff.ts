import type { Trouble } from './ports.js';

/** Pauses between tries, milliseconds. */
export interface BackoffSettings {
  /** Upper bound of the first pause. */
  readonly firstMs: number;
  readonly maxMs: number;
}

/** For requests and statements of the feed itself. */
export const FEED_BACKOFF: BackoffSettings = { firstMs: 500, maxMs: 60_000 };

/** What will not pass by itself (credentials, settings) is looked at again at this pace. */
const HOLD_MS = 30_000;
/** A `Retry-After` beyond this is not believed. */
const RETRY_AFTER_CAP_MS = 3_600_000;

/**
 * The pause after the nth failure in a row (from 1): full jitter over a doubling bound, never shorter than the service's
 * `Retry-After`. Pure.
 */
export function pauseAfter(
  failures: number,
  trouble: Pick<Trouble, 'remedy' | 'retryAfterMs'>,
  random: number,
  { firstMs, maxMs }: BackoffSettings = FEED_BACKOFF,
): number {
  const bound = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  const floor = Math.min(trouble.retryAfterMs ?? 0, RETRY_AFTER_CAP_MS);
  if (trouble.remedy === 'hold') return Math.max(floor, Math.min(HOLD_MS, bound * 4) * (0.5 + random / 2));
  // After Retry-After the jitter comes on top, or all replicas would return at the same moment.
  return floor > 0 ? floor + random * Math.min(bound, 1000) : random * bound;
}

/**
 * The pause at the end of the feed, milliseconds. It counts from the poll that saw the end: a run that came right behind it
 * waits for the interval, and not for the commits of that poll as well. Half the interval at least, so that a service or a
 * database that needs longer than the interval gets a rest. Pure.
 */
export function pauseUntilPoll(intervalMs: number, sincePollMs: number): number {
  return Math.max(intervalMs / 2, intervalMs - sincePollMs);
}
