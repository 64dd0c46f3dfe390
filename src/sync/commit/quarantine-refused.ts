import { classifyError, type Failure } from '../../core/errors.js';
import { batchOf, type CheckedEntries, type CheckedEntry, refusedEntry } from '../page/check-entries.js';
import type { CommitOutcome, EntryBatch, QuarantineEntry } from '../ports/index.js';

/** The entries of a page to store and to quarantine. */
export interface PageContent {
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
}

/** The outcome of a commit, and the entries that were committed. */
export interface CommittedPage {
  readonly outcome: CommitOutcome;
  readonly entries: readonly CheckedEntry[];
}

/**
 * Commits a page and its position in one transaction. If PostgreSQL refuses a value, the entries with such values are found by
 * writing some of them and rolling back; then the page is committed once, with those entries in quarantine. Any other error
 * is thrown: a lost connection or a full disk is not the fault of an entry.
 * @param commit commits this content with the page's position
 * @param tryEntries as in {@link FeedStore}
 */
export async function commitWithoutRefused(
  page: CheckedEntries,
  commit: (content: PageContent) => Promise<CommitOutcome>,
  tryEntries: (batch: EntryBatch) => Promise<void>,
  signal: AbortSignal,
): Promise<CommittedPage> {
  const content = {
    batch: batchOf(page.entries),
    quarantine: [...page.quarantine, ...repairedOriginals(page.entries)],
  };
  try {
    return { outcome: await commit(content), entries: page.entries };
  } catch (error) {
    if (!isRefused(error) || page.entries.length === 0) throw error;
  }
  const refusalOf = async (entries: readonly CheckedEntry[]) => {
    signal.throwIfAborted();
    try {
      await tryEntries(batchOf(entries));
      return null;
    } catch (error) {
      if (isRefused(error)) return classifyError(error);
      throw error;
    }
  };
  const { storable, refused } = await addStorable({ storable: [], refused: [] }, page.entries, refusalOf);
  const quarantine = [...page.quarantine, ...repairedOriginals(storable), ...refused];
  return { outcome: await commit({ batch: batchOf(storable), quarantine }), entries: storable };
}

/** Returns whether PostgreSQL refused a value. */
function isRefused(error: unknown): boolean {
  return classifyError(error).action === 'data';
}

/** Returns the loaded results as they were before their text was repaired. */
function repairedOriginals(entries: readonly CheckedEntry[]): readonly QuarantineEntry[] {
  return entries.flatMap(({ result }) => result?.original ?? []);
}

interface SortedEntries {
  readonly storable: readonly CheckedEntry[];
  readonly refused: readonly QuarantineEntry[];
}

/**
 * Adds those entries that PostgreSQL accepts together with the storable ones; two entries may be refused only together. A
 * refused result leaves the entry that it was loaded for.
 */
async function addStorable(
  sorted: SortedEntries,
  entries: readonly CheckedEntry[],
  refusalOf: (entries: readonly CheckedEntry[]) => Promise<Failure | null>,
): Promise<SortedEntries> {
  const [first] = entries;
  const together = [...sorted.storable, ...entries];
  const refusal = first === undefined ? null : await refusalOf(together);
  if (first === undefined || refusal === null) return { ...sorted, storable: together };
  if (entries.length > 1) {
    const middle = Math.ceil(entries.length / 2);
    const half = await addStorable(sorted, entries.slice(0, middle), refusalOf);
    return addStorable(half, entries.slice(middle), refusalOf);
  }
  if (first.result !== undefined) return addStorable(sorted, [withoutResult(first)], refusalOf);
  return { ...sorted, refused: [...sorted.refused, refusedEntry(first, refusal)] };
}

/** Returns an entry as it was delivered. It is pending. */
function withoutResult({ result: _, ...entry }: CheckedEntry): CheckedEntry {
  return { ...entry, loading: 'pending' };
}
