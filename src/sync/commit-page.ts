import { troubleOf } from '../outcome/trouble.js';
import { batchOf, type DraftEntry, refusedEntry } from './page-draft.js';
import type { CommitOutcome, EntryBatch, FeedStore, LeaseGrant, QuarantineEntry } from './ports.js';
import type { CompletedPage } from './read-ahead.js';

/** What of a page is stored. */
export interface PageContent {
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
}

/** A page that was committed, or would have been: what of it is stored. */
export interface CommittedPage {
  readonly outcome: CommitOutcome;
  readonly entries: readonly DraftEntry[];
  readonly content: PageContent;
}

/**
 * Commits a page and its position in one transaction. Where PostgreSQL refuses a value, the entries that hold such values
 * are found by writing ever fewer of them and rolling back; then the page is committed once, with them in quarantine. Any
 * other error is thrown: a lost connection or a full disk says nothing about an entry.
 * @param commit commits this content with the page's position
 */
export async function commitPage(
  { draft, completed }: Pick<CompletedPage, 'draft' | 'completed'>,
  commit: (content: PageContent) => Promise<CommitOutcome>,
  store: Pick<FeedStore, 'tryEntries'>,
  lease: LeaseGrant,
): Promise<CommittedPage> {
  const quarantine = [...draft.quarantine, ...repairedOriginals(completed)];
  const content = { batch: batchOf(completed, draft), quarantine };
  try {
    return { outcome: await commit(content), entries: completed, content };
  } catch (error) {
    if (troubleOf(error).remedy !== 'data' || completed.length === 0) throw error;
  }
  const { storable, refused } = await sortOutRefused(completed, (entries) => isStorable(entries, store, lease));
  const rest = { batch: batchOf(storable, null), quarantine: [...quarantine, ...refused.map(refusedEntry)] };
  return { outcome: await commit(rest), entries: storable, content: rest };
}

/** What loaded results were before their text was repaired. */
function repairedOriginals(entries: readonly DraftEntry[]): readonly QuarantineEntry[] {
  return entries.flatMap(({ fallback, original }) => (fallback !== undefined && original !== null ? [original] : []));
}

interface SortedOut {
  readonly storable: readonly DraftEntry[];
  readonly refused: readonly DraftEntry[];
}

/** Which entries are refused by themselves. A refused result gives way to the entry it was loaded for. */
async function sortOutRefused(
  entries: readonly DraftEntry[],
  isTaken: (entries: readonly DraftEntry[]) => Promise<boolean>,
): Promise<SortedOut> {
  const [first] = entries;
  if (first === undefined || (await isTaken(entries))) return { storable: entries, refused: [] };
  if (entries.length === 1) {
    return first.fallback === undefined
      ? { storable: [], refused: [first] }
      : sortOutRefused([first.fallback], isTaken);
  }
  const middle = Math.ceil(entries.length / 2);
  const one = await sortOutRefused(entries.slice(0, middle), isTaken);
  const other = await sortOutRefused(entries.slice(middle), isTaken);
  return { storable: [...one.storable, ...other.storable], refused: [...one.refused, ...other.refused] };
}

async function isStorable(
  entries: readonly DraftEntry[],
  store: Pick<FeedStore, 'tryEntries'>,
  lease: LeaseGrant,
): Promise<boolean> {
  try {
    await store.tryEntries(lease, batchOf(entries, null));
    return true;
  } catch (error) {
    if (troubleOf(error).remedy === 'data') return false;
    throw error;
  }
}
