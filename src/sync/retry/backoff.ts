import type { Failure } from '../../core/errors.js';

/** Pauses between retries, milliseconds. */
export interface BackoffSettings {
  /** Upper bound of the first pause. */
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Pauses for requests and statements of the feed itself. */
const FEED_BACKOFF: BackoffSettings = { firstMs: 500, maxMs: 60_000 };

/** Maximum `Retry-After` that is obeyed, milliseconds. */
const MAX_RETRY_AFTER_MS = 3_600_000;
/** Jitter that is added to `Retry-After`, so that replicas do not return at the same moment, milliseconds. */
const RETRY_AFTER_JITTER_MS = 1_000;
/**
 * Maximum pause after a failure that needs an operator (credentials, settings), milliseconds: soon after it is fixed, work continues.
 */
const MAX_HOLD_MS = 30_000;
/** Factor by which the first pause after such a failure is longer: an operator takes longer than a network to recover. */
const HOLD_FACTOR = 4;

/**
 * Returns the pause after the nth failure in a row (from 1), milliseconds. After a failure that can be retried it is never shorter
 * than the service's `Retry-After`, and random below a bound that doubles from 0.5 s to a minute. After one that needs an operator it
 * grows from 1 to 2 s up to 15 to 30 s, whatever the service asks for: the service does not know when it is fixed. Pure.
 */
export function pauseAfter(
  failures: number,
  { action, retryAfterMs = 0 }: Pick<Failure, 'action' | 'retryAfterMs'>,
  random: number,
  { firstMs, maxMs }: BackoffSettings = FEED_BACKOFF,
): number {
  const bound = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  if (action === 'hold') return Math.min(MAX_HOLD_MS, bound * HOLD_FACTOR) * (0.5 + random / 2);
  const requestedMs = Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
  return requestedMs > 0 ? requestedMs + random * Math.min(bound, RETRY_AFTER_JITTER_MS) : random * bound;
}

/**
 * Returns the pause until work that is done at intervals is due, milliseconds. The interval counts from the beginning of the last
 * work: a run delivered right after a poll does not wait for the commits of that poll as well. The pause is at least half of the
 * interval, to spare a service or database that needs longer than the interval. Pure.
 */
export function pauseUntilDue(intervalMs: number, sinceBegunMs: number): number {
  return Math.max(intervalMs / 2, intervalMs - sinceBegunMs);
}
