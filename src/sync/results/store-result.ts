import type { CommitCounts } from '../../core/counts.js';
import type { CheckedEntry } from '../page/check-entries.js';
import type { CommitStore, LeaseGrant, PendingReason, PendingStore } from '../ports/index.js';

/**
 * The outcome for a loaded result. `still_pending`: it contradicts the stored row, or its delivery is older than the retention,
 * which will delete the row.
 */
export type StoredResultOutcome =
  | { readonly kind: 'stored'; readonly counts: CommitCounts }
  | { readonly kind: 'still_pending'; readonly reason: PendingReason; readonly counts: CommitCounts }
  | { readonly kind: 'fenced' };

/**
 * Stores a result that was loaded after its page was committed. If its text was repaired, the original goes to quarantine
 * (promise 4). Rejects with a `Failure`, which has the action `reject` if PostgreSQL refuses one of the values.
 */
export async function storeResult(
  store: CommitStore & PendingStore,
  lease: LeaseGrant,
  entry: CheckedEntry,
): Promise<StoredResultOutcome> {
  const originals = entry.original === null ? [] : [entry.original];
  const outcome = await store.commitResults(lease, [{ ...entry.accepted, isAnswer: true }], originals);
  if (outcome.kind === 'fenced') return outcome;
  const { counts } = outcome;
  const { scanId, revision } = entry.accepted.run;
  const isContradicted = counts.conflicts > 0;
  if (!isContradicted && counts.inserted + counts.updated > 0) return { kind: 'stored', counts };
  const stored = await store.findStored([scanId]);
  // A lower stored revision is the one that was requested: the service has returned a higher one.
  const isPending = stored.some((row) => row.revision <= revision && !row.complete);
  if (!isPending) return { kind: 'stored', counts };
  return { kind: 'still_pending', reason: isContradicted ? 'invalid_result' : 'not_loaded', counts };
}
