import { batchOf, type DraftEntry, refusedEntry } from './page-draft.js';
import type { CommitCounts, CommitOutcome, FeedStore, PageCommit, QuarantineEntry } from './ports.js';
import { troubleOf } from './trouble.js';

/** A page to commit, its entries still apart. */
export interface DraftCommit extends Omit<PageCommit, 'batch'> {
  readonly entries: readonly DraftEntry[];
}

/**
 * What follows when PostgreSQL refused a page for one of its values: the page is committed in halves without its cursor,
 * down to the entry that is refused alone; that one is quarantined, and the cursor goes with it, last. Every other error
 * is thrown again: a lost connection or a full disk says nothing about an entry.
 */
export async function isolateRefused(store: FeedStore, draft: DraftCommit, error: unknown): Promise<CommitOutcome> {
  if (troubleOf(error).remedy !== 'data' || draft.entries.length === 0) throw error;
  const parts = await commitHalves(store, draft, draft.entries);
  if (parts === 'fenced') return { kind: 'fenced' };
  const { entries: _, ...commit } = draft;
  const last = await store.commitPage({
    ...commit,
    quarantine: [...commit.quarantine, ...parts.refused],
    batch: batchOf([], null),
  });
  return last.kind === 'fenced' ? last : { ...last, counts: sum(parts.counts, last.counts) };
}

interface Parts {
  readonly counts: CommitCounts;
  readonly refused: readonly QuarantineEntry[];
}

async function commitHalves(
  store: FeedStore,
  draft: DraftCommit,
  entries: readonly DraftEntry[],
): Promise<Parts | 'fenced'> {
  const [first] = entries;
  if (first !== undefined && entries.length === 1) return commitAlone(store, draft, first);
  const middle = Math.ceil(entries.length / 2);
  let done: Parts = { counts: NOTHING, refused: [] };
  for (const half of [entries.slice(0, middle), entries.slice(middle)]) {
    const part = (await commitPart(store, draft, half)) ?? (await commitHalves(store, draft, half));
    if (part === 'fenced') return part;
    done = { counts: sum(done.counts, part.counts), refused: [...done.refused, ...part.refused] };
  }
  return done;
}

/** A refused result gives way to the entry it was loaded for; a refused entry is quarantined. */
async function commitAlone(store: FeedStore, draft: DraftCommit, entry: DraftEntry): Promise<Parts | 'fenced'> {
  const part = await commitPart(store, draft, [entry]);
  if (part !== null) return part;
  if (entry.fallback !== undefined) return commitAlone(store, draft, entry.fallback);
  return { counts: NOTHING, refused: [refusedEntry(entry)] };
}

/** Null: PostgreSQL refuses a value in it. */
async function commitPart(
  store: FeedStore,
  { entries: _, ...commit }: DraftCommit,
  entries: readonly DraftEntry[],
): Promise<Parts | 'fenced' | null> {
  try {
    const outcome = await store.commitPage({
      ...commit,
      to: commit.from,
      quarantine: [],
      freshness: null,
      batch: batchOf(entries, null),
    });
    return outcome.kind === 'fenced' ? 'fenced' : { counts: outcome.counts, refused: [] };
  } catch (error) {
    if (troubleOf(error).remedy === 'data') return null;
    throw error;
  }
}

const NOTHING: CommitCounts = {
  inserted: 0,
  updated: 0,
  unchanged: 0,
  stale: 0,
  quarantined: 0,
  conflicts: 0,
  stored: [],
};

function sum(a: CommitCounts, b: CommitCounts): CommitCounts {
  return {
    inserted: a.inserted + b.inserted,
    updated: a.updated + b.updated,
    unchanged: a.unchanged + b.unchanged,
    stale: a.stale + b.stale,
    quarantined: a.quarantined + b.quarantined,
    conflicts: a.conflicts + b.conflicts,
    stored: [...a.stored, ...b.stored],
  };
}
