import type { CommitCounts } from '../../core/counts.js';
import { classifyError } from '../../core/errors.js';
import type { CheckedEntry } from '../../sync/page/check-page.js';
import type { FeedService, FeedStore, PendingReason, PendingRun } from '../../sync/ports/index.js';
import type { ResultLoader } from '../../sync/results/resolve-truncated.js';
import { pendingPause } from '../../sync/results/retry-pending.js';
import { storeResult } from '../../sync/results/store-result.js';
import { type FeedCommandContext, storeUnderLease, withCurrentLease } from '../context/with-feed.js';
import { SERVICE_FAILURES } from '../context/with-service.js';

/** Outcome of one attempt to load a pending result. */
export interface Resolved {
  readonly scanId: string;
  readonly revision: number;
  /** `complete`: it was already complete. */
  readonly outcome: 'resolved' | 'pending' | 'complete';
  readonly reason: PendingReason | null;
  /** Message of the error, if the attempt failed with one. */
  readonly detail: string | null;
}

export interface ResolveParts {
  readonly store: FeedStore;
  readonly loader: ResultLoader;
  readonly service: WatchedService;
  /** First pause before the daemon retries, milliseconds. */
  readonly pendingRetryMs: number;
}

/** Loads a pending result now and stores it as the daemon would, or records the failed attempt. */
export async function resolveRun(
  run: PendingRun,
  work: FeedCommandContext<never>,
  parts: ResolveParts,
  signal: AbortSignal,
): Promise<Resolved> {
  const { scanId, revision } = run;
  const verdict = await parts.loader.loadOnce(run, signal);
  try {
    signal.throwIfAborted();
    const stored = verdict.kind === 'loaded' ? await storeRun(verdict.entry, work, parts.store) : null;
    if (verdict.kind === 'loaded' && stored?.contradicted === false) {
      return { scanId, revision: verdict.entry.accepted.run.revision, outcome: 'resolved', reason: null, detail: null };
    }
  } finally {
    verdict.release();
  }
  const reason = verdict.kind === 'pending' ? verdict.reason : 'invalid_result';
  const nextTryInMs = pendingPause(run.attempts + 1, run.pendingForMs, parts.pendingRetryMs);
  await withCurrentLease(work, async (lease) =>
    (await parts.store.postponePending(lease, [{ scanId, revision, reason, nextTryInMs }])) ? true : null,
  );
  return { scanId, revision, outcome: 'pending', reason, detail: parts.service.failureOf(scanId) };
}

/**
 * Stores a run that was loaded through the single-run endpoint, under the current lease epoch. A result that contradicts the
 * stored row leaves it pending. Resolves to null if PostgreSQL refuses one of the values.
 */
export function storeRun(
  entry: CheckedEntry,
  work: FeedCommandContext<never>,
  store: FeedStore,
): Promise<{ readonly counts: CommitCounts; readonly contradicted: boolean } | null> {
  return storeUnderLease(work, async (lease) => {
    const outcome = await storeResult(store, lease, entry);
    if (outcome.kind === 'fenced') return null;
    return { counts: outcome.counts, contradicted: outcome.kind === 'contradicted' };
  });
}

/** A service that remembers its failures. */
export interface WatchedService extends FeedService {
  /** Returns the message of the last failed request for a run, or null. */
  failureOf(scanId: string): string | null;
}

/** @param onServiceFailure called with a failure that every request would meet */
export function watchService(service: FeedService, onServiceFailure: (error: unknown) => void): WatchedService {
  const failures = new Map<string, string>();
  return {
    readPage: (request, signal) => service.readPage(request, signal),
    readRun: async (scanId, options, signal) => {
      try {
        return await service.readRun(scanId, options, signal);
      } catch (error) {
        if (error instanceof Error) failures.set(scanId, error.message);
        if (SERVICE_FAILURES.has(classifyError(error).kind)) onServiceFailure(error);
        throw error;
      }
    },
    failureOf: (scanId) => failures.get(scanId) ?? null,
  };
}
