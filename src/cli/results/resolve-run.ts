import { classifyError } from '../../core/errors.js';
import type { FeedService, FeedStore, PendingReason, PendingRun } from '../../sync/ports/index.js';
import type { ResultLoader } from '../../sync/results/resolve-truncated.js';
import { postponed } from '../../sync/results/retry-pending.js';
import { storeResult } from '../../sync/results/store-result.js';
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
  work: FeedCommandContext,
  parts: ResolveParts,
  signal: AbortSignal,
): Promise<Resolved> {
  const { scanId, revision } = run;
  const tried = await loadAndStore(run, work, parts, signal);
  if ('revision' in tried) {
    return { scanId, revision: tried.revision, outcome: 'resolved', reason: null, detail: null };
  }
  const { reason, retryAfterMs } = tried;
  const failed = [postponed(run, reason, parts.pendingRetryMs, retryAfterMs)];
  await withCurrentLease(work, async (lease) => ((await parts.store.postponePending(lease, failed)) ? true : null));
  return { scanId, revision, outcome: 'pending', reason, detail: parts.service.failureOf(scanId) };
}

interface Loaded {
  readonly revision: number;
}

interface NotLoaded {
  readonly reason: PendingReason;
  readonly retryAfterMs?: number | undefined;
}

async function loadAndStore(
  run: PendingRun,
  work: FeedCommandContext,
  { loader, store }: ResolveParts,
  signal: AbortSignal,
): Promise<Loaded | NotLoaded> {
  const verdict = await loader.loadOnce(run, signal);
  try {
    signal.throwIfAborted();
    if (verdict.kind === 'pending') return verdict;
    const stored = await storeUnderLease(work, async (lease) => {
      const outcome = await storeResult(store, lease, verdict.entry);
      return outcome.kind === 'fenced' ? null : outcome;
    });
    if (stored === null) return { reason: 'invalid_result' };
    return stored.kind === 'stored' ? { revision: verdict.entry.accepted.run.revision } : { reason: stored.reason };
  } finally {
    verdict.release();
  }
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
