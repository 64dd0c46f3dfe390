import { classifyError, type Failure, isValueRefused } from '../../core/errors.js';
import { batchOf, type CheckedEntry, refusedEntry } from '../page/check-entries.js';
import type { EntryBatch, QuarantineEntry } from '../ports/index.js';

/** The entries of a page, split into those to store and those that PostgreSQL refuses. */
export interface SplitEntries {
  readonly storable: readonly CheckedEntry[];
  readonly refused: readonly QuarantineEntry[];
}

/** Tries to write entries. Returns the failure if PostgreSQL refuses one of their values, else null. */
type TryToWrite = (entries: readonly CheckedEntry[]) => Promise<Failure | null>;

/**
 * Finds the entries with values that PostgreSQL refuses, by writing some of the entries and rolling back.
 * @param tryEntries as in {@link FeedStore}
 */
export function findRefused(
  entries: readonly CheckedEntry[],
  signal: AbortSignal,
  tryEntries: (batch: EntryBatch) => Promise<void>,
): Promise<SplitEntries> {
  const tryToWrite = async (tried: readonly CheckedEntry[]) => {
    signal.throwIfAborted();
    try {
      await tryEntries(batchOf(tried));
      return null;
    } catch (error) {
      if (isValueRefused(error)) return classifyError(error);
      throw error;
    }
  };
  return splitFurther({ storable: [], refused: [] }, entries, tryToWrite);
}

/**
 * Adds entries to those that were split before. An entry is storable if PostgreSQL accepts it together with the storable ones, because two
 * entries may be refused only together. If an entry is refused with its loaded result, it is tried without it.
 */
async function splitFurther(
  split: SplitEntries,
  entries: readonly CheckedEntry[],
  tryToWrite: TryToWrite,
): Promise<SplitEntries> {
  const [first] = entries;
  if (first === undefined) return split;
  const together = [...split.storable, ...entries];
  const refusal = await tryToWrite(together);
  if (refusal === null) return { ...split, storable: together };
  if (entries.length > 1) {
    const middle = Math.ceil(entries.length / 2);
    const half = await splitFurther(split, entries.slice(0, middle), tryToWrite);
    return splitFurther(half, entries.slice(middle), tryToWrite);
  }
  if (first.result !== undefined) return splitFurther(split, [withoutResult(first)], tryToWrite);
  return { ...split, refused: [...split.refused, refusedEntry(first, refusal)] };
}

/** Returns an entry as it was delivered. It is pending. */
function withoutResult({ result: _, ...entry }: CheckedEntry): CheckedEntry {
  return { ...entry, loading: 'pending' };
}
