import { addCounts, NO_COUNTS } from '../outcome/counts.js';
import { troubleOf } from '../outcome/trouble.js';
import { batchOf, type DraftEntry, refusedEntry } from './page-draft.js';
import type { CommitCounts, CommitOutcome, EntryBatch, QuarantineEntry } from './ports.js';

/** Writes a part of a page; the last one takes the position with it. */
export type PartWriter = (part: Part) => Promise<CommitOutcome>;

export interface Part {
  readonly entries: readonly DraftEntry[];
  /** The same entries, as they are stored. */
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
  readonly last: boolean;
}

/**
 * What follows when PostgreSQL refused a page for one of its values: the page is committed in halves without its cursor,
 * down to the entry that is refused alone; that one is quarantined, and the cursor goes with it, last. Every other error
 * is thrown again: a lost connection or a full disk says nothing about an entry.
 */
export async function isolateRefused(
  write: PartWriter,
  entries: readonly DraftEntry[],
  quarantine: readonly QuarantineEntry[],
  error: unknown,
): Promise<CommitOutcome> {
  if (troubleOf(error).remedy !== 'data' || entries.length === 0) throw error;
  const parts = await commitHalves(write, entries);
  if (parts === 'fenced') return { kind: 'fenced' };
  const last = await write({
    entries: [],
    batch: batchOf([], null),
    quarantine: [...quarantine, ...parts.refused],
    last: true,
  });
  return last.kind === 'fenced' ? last : { ...last, counts: addCounts(parts.counts, last.counts) };
}

export interface Parts {
  readonly counts: CommitCounts;
  readonly refused: readonly QuarantineEntry[];
}

/** Entries that were refused together, in ever smaller parts. */
export async function commitHalves(write: PartWriter, entries: readonly DraftEntry[]): Promise<Parts | 'fenced'> {
  const [first] = entries;
  if (first !== undefined && entries.length === 1) return commitAlone(write, first);
  const middle = Math.ceil(entries.length / 2);
  let done: Parts = { counts: NO_COUNTS, refused: [] };
  for (const half of [entries.slice(0, middle), entries.slice(middle)]) {
    const part = (await commitPart(write, half)) ?? (await commitHalves(write, half));
    if (part === 'fenced') return part;
    done = { counts: addCounts(done.counts, part.counts), refused: [...done.refused, ...part.refused] };
  }
  return done;
}

/** A refused result gives way to the entry it was loaded for; a refused entry is quarantined. */
async function commitAlone(write: PartWriter, entry: DraftEntry): Promise<Parts | 'fenced'> {
  const part = await commitPart(write, [entry]);
  if (part !== null) return part;
  if (entry.fallback !== undefined) return commitAlone(write, entry.fallback);
  return { counts: NO_COUNTS, refused: [refusedEntry(entry)] };
}

/** Null: PostgreSQL refuses a value in it. */
async function commitPart(write: PartWriter, entries: readonly DraftEntry[]): Promise<Parts | 'fenced' | null> {
  try {
    const outcome = await write({ entries, batch: batchOf(entries, null), quarantine: [], last: false });
    return outcome.kind === 'fenced' ? 'fenced' : { counts: outcome.counts, refused: [] };
  } catch (error) {
    if (troubleOf(error).remedy === 'data') return null;
    throw error;
  }
}
