import { classifyError, type Failure, isValueRefused } from '../../core/errors.js';
import { batchOf, type CheckedEntry, refusedEntry } from '../page/check-entries.js';
import type { EntryBatch, QuarantineEntry } from '../ports/index.js';

/** The entries of a page to store, and those that PostgreSQL refuses. */
export interface SortedEntries {
  readonly storable: readonly CheckedEntry[];
  readonly refused: readonly QuarantineEntry[];
}

/**
 * Finds the entries with values that PostgreSQL refuses, by writing some of the entries and rolling back.
 * @param tryEntries as in {@link FeedStore}
 */
export function withoutRefused(
  entries: readonly CheckedEntry[],
  tryEntries: (batch: EntryBatch) => Promise<void>,
  signal: AbortSignal,
): Promise<SortedEntries> {
  const refusalOf = async (tried: readonly CheckedEntry[]) => {
    signal.throwIfAborted();
    try {
      await tryEntries(batchOf(tried));
      return null;
    } catch (error) {
      if (isValueRefused(error)) return classifyError(error);
      throw error;
    }
  };
  return addStorable({ storable: [], refused: [] }, entries, refusalOf);
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
