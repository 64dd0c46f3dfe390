import type { Clock } from '../../core/clock.js';
import type { CommitCounts } from '../../core/counts.js';
import type { QuarantinedEntry } from '../../storage/operator/quarantined-entries.js';
import { batchOf, refusedEntry } from '../../sync/page/check-entries.js';
import { recheckPayload } from '../../sync/results/recheck-payload.js';
import { type FeedCommandContext, openFeedStore, storeUnderLease } from '../context/with-feed.js';

/** `stored`: by this replay. `present`: this revision was already stored. `overtaken`: a newer one is, or the run was deleted. */
export type ReplayOutcome = 'stored' | 'present' | 'overtaken' | 'still_bad';

export interface Replayed extends Rejection {
  readonly id: string;
  readonly outcome: ReplayOutcome;
}

/** Why an entry is not stored; null if it is. */
interface Rejection {
  readonly scanId: string | null;
  readonly revision: number | null;
  readonly reason: string | null;
  readonly detail: string | null;
}

/**
 * Checks a quarantined entry again and stores it by the statement that stores pages, under the feed's current epoch. This is as
 * safe with a running daemon as a redelivery. The entry is stored first and marked afterwards: if a replay is interrupted in
 * between, the next one finds the run present.
 */
export async function replayEntry(
  work: FeedCommandContext,
  { id, scanId, revision }: QuarantinedEntry,
  clock: Clock,
): Promise<Replayed | null> {
  const { settings, quarantine, feed } = work;
  const payload = await quarantine.readPayload(feed.name, id);
  if (payload === undefined) return null;
  if (payload.length === 0) return stillBad(id, { ...GONE, scanId, revision });
  const checked = recheckPayload(payload, settings.feed.markdown);
  if (!checked.usable) return stillBad(id, checked.entry);
  const feedStore = openFeedStore(work, clock);
  const counts = await storeUnderLease(work, async (lease) => {
    const outcome = await feedStore.commitResults(lease, batchOf([checked.entry]));
    return outcome.kind === 'fenced' ? null : outcome.counts;
  });
  if (counts === null) return stillBad(id, refusedEntry(checked.entry));
  const outcome = outcomeOf(counts);
  await quarantine.settle(feed.name, id, outcome === 'overtaken' ? 'discarded' : 'replayed');
  const { run } = checked.entry.accepted;
  return { id, scanId: run.scanId, revision: run.revision, outcome, reason: null, detail: null };
}

const GONE = {
  reason: 'gone',
  detail: 'its content was removed: it was erased, or is past the retention',
};

function outcomeOf({ inserted, updated, stale }: CommitCounts): ReplayOutcome {
  if (inserted + updated > 0) return 'stored';
  return stale > 0 ? 'overtaken' : 'present';
}

function stillBad(id: string, { scanId, revision, reason, detail }: Rejection): Replayed {
  return { id, scanId, revision, outcome: 'still_bad', reason, detail };
}
