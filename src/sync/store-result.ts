import { batchOf, type DraftEntry } from './page-draft.js';
import type { CommitOutcome, FeedStore, LeaseGrant } from './ports.js';

/**
 * Stores a result that was loaded after its page was committed; what it was before its text was repaired goes to
 * quarantine with it (promise 4). Rejects with a `Trouble`, of remedy `data` where PostgreSQL refuses one of its values.
 */
export function storeResult(
  store: Pick<FeedStore, 'commitResults'>,
  lease: LeaseGrant,
  draft: DraftEntry,
): Promise<CommitOutcome> {
  return store.commitResults(lease, batchOf([draft], null), draft.original === null ? [] : [draft.original]);
}
