import { batchOf, type DraftEntry } from './page-draft.js';
import type { CommitCounts, FeedStore, LeaseGrant } from './ports.js';

/** What became of a loaded result. `contradicted`: it contradicts the stored row, which stays pending. */
export type StoredResultOutcome =
  | { readonly kind: 'stored' | 'contradicted'; readonly counts: CommitCounts }
  | { readonly kind: 'fenced' };

/**
 * Stores a result that was loaded after its page was committed; what it was before its text was repaired goes to
 * quarantine with it (promise 4). Rejects with a `Trouble`, of remedy `data` where PostgreSQL refuses one of its values.
 */
export async function storeResult(
  store: Pick<FeedStore, 'commitResults' | 'findStored'>,
  lease: LeaseGrant,
  draft: DraftEntry,
): Promise<StoredResultOutcome> {
  const originals = draft.original === null ? [] : [draft.original];
  const outcome = await store.commitResults(lease, batchOf([draft], null), originals);
  if (outcome.kind === 'fenced') return outcome;
  const { counts } = outcome;
  const { scanId, revision } = draft.accepted.run;
  const isPending = async () =>
    (await store.findStored([scanId])).some((stored) => stored.revision === revision && !stored.complete);
  return { kind: counts.conflicts > 0 && (await isPending()) ? 'contradicted' : 'stored', counts };
}
