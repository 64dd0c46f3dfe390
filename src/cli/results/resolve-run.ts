import { classifyError } from '../../core/errors.js';
import type { CheckedEntry } from '../../sync/page/check-entries.js';
import type { FeedStore, PendingReason, PendingRun } from '../../sync/ports/index.js';
import type { ResultLoader } from '../../sync/results/resolve-truncated.js';
import { postponed } from '../../sync/results/retry-pending.js';
import { type StoredResultOutcome, storeResult } from '../../sync/results/store-result.js';
import { type FeedCommandContext, storeUnderLease, withCurrentLease } from '../context/with-feed.js';
import { SERVICE_FAILURES } from '../context/with-service.js';

export interface Resolved {
  readonly scanId: string;
  readonly revision: number;
  /** `complete`: it was already complete. */
  readonly outcome: 'resolved' | 'pending' | 'complete';
  readonly reason: PendingReason | null;
  readonly detail: string | null;
}

/**
 * Loads a pending result now and stores it as the daemon would, or records the failed attempt. A failure that every request would
 * meet aborts `stop`, which ends all other attempts.
 */
export async function resolveRun(
  run: PendingRun,
  work: FeedCommandContext,
  { loader, store }: { readonly loader: ResultLoader; readonly store: FeedStore },
  stop: AbortController,
): Promise<Resolved> {
  const { scanId, revision } = run;
  let reason: PendingReason = 'invalid_result'; // if PostgreSQL refuses one of its values
  const verdict = await loader.loadOnce(run, stop.signal);
  const error = verdict.kind === 'pending' ? verdict.error : undefined;
  if (SERVICE_FAILURES.has(classifyError(error).kind)) stop.abort(error);
  try {
    stop.signal.throwIfAborted();
    if (verdict.kind === 'pending') reason = verdict.reason;
    else {
      const { entry } = verdict;
      const stored = await storeRun(entry, work, store);
      if (stored?.kind === 'stored')
        return { scanId, revision: entry.accepted.run.revision, outcome: 'resolved', reason: null, detail: null };
      if (stored !== null) reason = stored.reason;
    }
  } finally {
    verdict.release();
  }
  const retryAfterMs = verdict.kind === 'pending' ? verdict.retryAfterMs : undefined;
  const failed = [postponed(run, reason, work.settings.feed.pendingRetryMs, retryAfterMs)];
  await withCurrentLease(work, async (lease) => ((await store.postponePending(lease, failed)) ? true : null));
  return { scanId, revision, outcome: 'pending', reason, detail: error instanceof Error ? error.message : null };
}

/**
 * Stores a run that was loaded through the single-run endpoint, under the current lease epoch. Resolves to null if PostgreSQL
 * refuses one of the values.
 */
export function storeRun(
  entry: CheckedEntry,
  work: FeedCommandContext,
  store: FeedStore,
): Promise<Exclude<StoredResultOutcome, { kind: 'fenced' }> | null> {
  return storeUnderLease(work, async (lease) => {
    const outcome = await storeResult(store, lease, entry);
    return outcome.kind === 'fenced' ? null : outcome;
  });
}
