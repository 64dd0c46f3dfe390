import type { CommitCounts } from '../../core/counts.js';
import { batchOf, type CheckedEntry } from '../page/check-page.js';
import type { FeedStore, LeaseGrant } from '../ports/index.js';

/** The outcome for a loaded result. `contradicted`: it contradicts the stored row, which stays pending. */
export type StoredResultOutcome =
  | { readonly kind: 'stored' | 'contradicted'; readonly counts: CommitCounts }
  | { readonly kind: 'fenced' };

/**
 * Stores a result that was loaded after its page was committed. If its text was repaired, the original goes to quarantine
 * (promise 4). Rejects with a `Failure`, which has the action `data` if PostgreSQL refuses one of the values.
 */
export async function storeResult(
  store: Pick<FeedStore, 'commitResults' | 'findStored'>,
  lease: LeaseGrant,
  entry: CheckedEntry,
): Promise<StoredResultOutcome> {
  const originals = entry.original === null ? [] : [entry.original];
  const outcome = await store.commitResults(lease, batchOf([entry]), originals);
  if (outcome.kind === 'fenced') return outcome;
  const { counts } = outcome;
  const { scanId, revision } = entry.accepted.run;
  const isPending = async () =>
    (await store.findStored([scanId])).some((stored) => stored.revision === revision && !stored.complete);
  return { kind: counts.conflicts > 0 && (await isPending()) ? 'contradicted' : 'stored', counts };
}
