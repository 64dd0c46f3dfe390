import { findQuarantined, identityOf, type UnusableEntryState } from '../../storage/commit/quarantine.js';
import type { Comparison } from '../../storage/operator/compare-entries.js';
import { type CheckedEntries, type CheckedEntry, withPending } from '../../sync/page/check-entries.js';
import type { EntryBatch, QuarantineEntry } from '../../sync/ports/index.js';
import { needsFullResult } from '../../sync/results/full-result.js';
import { findRefused } from '../../sync/writer/find-refused.js';
import type { FeedCommandContext } from '../context/with-feed.js';

/**
 * `discarded`: by an operator, or because a newer revision is stored. `deleted`: erased, or past the retention. The last four are
 * differences.
 */
export const VERDICTS = [
  'same',
  'pending',
  'discarded',
  'deleted',
  'missing',
  'older_revision',
  'other_content',
  'quarantined',
] as const;
export type Verdict = (typeof VERDICTS)[number];

export interface Verified extends Pick<Comparison, 'storedRevision' | 'differing'> {
  readonly scanId: string | null;
  readonly revision: number | null;
  readonly verdict: Verdict;
  /** Null if it is missing or unreadable. */
  readonly deliveredAt: Date | null;
  /** Whether the feed omits the data, so that it was not compared. */
  readonly truncated: boolean;
}

type Source = Pick<FeedCommandContext, 'compareEntries' | 'connection' | 'feed' | 'settings'>;

/** Compares a page with the database, entry by entry. Writes nothing. */
export async function verifyPage(checked: CheckedEntries, source: Source): Promise<readonly Verified[]> {
  const { compareEntries, feed, settings } = source;
  const entries = checked.entries.map((entry) =>
    needsFullResult(entry.accepted.run, false) ? withPending(entry, 'not_loaded') : entry,
  );
  let found: readonly Comparison[] = [];
  const compare = async (batch: EntryBatch) => {
    found = await compareEntries(feed.name, batch, settings.database.retention.runs);
  };
  // The last comparison that succeeds is that of all storable entries.
  const { storable, refused } = await findRefused(entries, new AbortController().signal, compare);
  const compared = found.flatMap((comparison) => {
    const entry = storable[comparison.index];
    return entry === undefined ? [] : [verified(comparison, entry)];
  });
  const unusable = checked.quarantine.filter(({ state }) => state === 'open');
  return [...compared, ...(await verifyUnusable([...refused, ...unusable], source))];
}

function verified(comparison: Comparison, { accepted: { run, pending } }: CheckedEntry): Verified {
  const { scanId, revision, storedRevision, differing } = comparison;
  const verdict = verdictOf(comparison);
  const truncated = pending !== null;
  return { scanId, revision, storedRevision, differing, verdict, deliveredAt: run.deliveredAt, truncated };
}

/** Pure. */
function verdictOf({ revision, storedRevision, differing, pending, deleted, quarantine }: Comparison): Verdict {
  if (storedRevision === null || storedRevision < revision) {
    if (deleted) return 'deleted';
    return setAside(quarantine) ?? (storedRevision === null ? 'missing' : 'older_revision');
  }
  if (differing.length > 0) return 'other_content';
  return pending ? 'pending' : 'same';
}

function setAside(state: UnusableEntryState | null): Verdict | null {
  if (state === 'open') return 'quarantined';
  return state === 'discarded' || state === 'deleted' ? state : null;
}

async function verifyUnusable(
  entries: readonly QuarantineEntry[],
  { connection, feed }: Source,
): Promise<readonly Verified[]> {
  const known = await findQuarantined(connection, feed.name, entries);
  return entries.map((entry) => {
    const { scanId, revision } = entry;
    const state = known.get(identityOf(entry)) ?? null;
    const verdict = setAside(state) ?? (state === null ? 'missing' : 'same');
    const rest = { storedRevision: null, differing: [], deliveredAt: null, truncated: false };
    return { scanId, revision, verdict, ...rest };
  });
}
