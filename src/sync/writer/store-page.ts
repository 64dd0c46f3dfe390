import type { Clock } from '../../core/clock.js';
import { batchOf, type CheckedEntry } from '../page/check-entries.js';
import type { CheckedPage, CommittedPage } from '../page/page.js';
import type { CommitOutcome, Committed, EntryBatch, Fenced, QuarantineEntry } from '../ports/index.js';
import type { PageContent, PageTarget } from './page-target.js';
import { isRefused, withoutRefused } from './without-refused.js';

/**
 * Stores a page with its position in one commit, and releases its memory. If PostgreSQL refuses a value, the page is committed
 * with the entries that have such values in quarantine.
 * @param overlapping sends the commit while the one of the page before may still run
 * @throws MostlyBad
 */
export async function storePage(
  page: CheckedPage,
  target: PageTarget,
  overlapping: (commit: () => Promise<CommitOutcome>) => Promise<CommitOutcome>,
  clock: Clock,
  signal: AbortSignal,
): Promise<CommittedPage | Fenced> {
  const { lease, store, breaker } = target;
  const commit = target.prepare(page);
  const commitBegunAt = clock.monotonic();
  /** @param unusable the entries that are not stored */
  const attempt = async (entries: readonly CheckedEntry[], unusable: readonly QuarantineEntry[]) => {
    const content = contentOf(entries, unusable);
    const bad = content.quarantine.length === 0 ? [] : await store.notYetQuarantined(lease.feed, content.quarantine);
    try {
      breaker.check(page.items, bad);
    } catch (mostlyBad) {
      const { acceptsBadUntil } = await store.readStatus(lease.feed);
      if (acceptsBadUntil === null) throw mostlyBad;
    }
    const outcome = await overlapping(() => {
      target.onStep?.();
      return commit(content);
    });
    if (outcome.kind === 'fenced') return outcome;
    breaker.committed(page.items, bad);
    return committedPage(page, entries, outcome, { commitBegunAt, committedAt: clock.monotonic() });
  };
  const tryEntries = (batch: EntryBatch) => {
    target.onStep?.();
    return store.tryEntries(lease, batch);
  };
  try {
    return await attempt(page.entries, page.quarantine);
  } catch (error) {
    if (!isRefused(error) || page.entries.length === 0) throw error;
    const { storable, refused } = await withoutRefused(page.entries, tryEntries, signal);
    return await attempt(storable, [...page.quarantine, ...refused]);
  } finally {
    page.release();
  }
}

/** Adds the loaded results as they were before their text was repaired. */
function contentOf(entries: readonly CheckedEntry[], unusable: readonly QuarantineEntry[]): PageContent {
  const repaired = entries.flatMap(({ result }) => result?.original ?? []);
  return { batch: batchOf(entries), quarantine: [...unusable, ...repaired] };
}

function committedPage(
  page: CheckedPage,
  entries: readonly CheckedEntry[],
  { kind, counts, asOf, endClaimed }: Committed,
  times: { readonly commitBegunAt: number; readonly committedAt: number },
): CommittedPage {
  const { at, next, cursorUnusable, isCached, items, limit, polls, polledAt, provenUpTo, monotonicTimeOf, ending } =
    page;
  const stored = new Set(counts.stored);
  const loadings = { resolved: 0, pending: 0, skipped: 0 };
  for (const { loading } of entries) if (loading !== undefined) loadings[loading] += 1;
  return {
    ...{ at, next, cursorUnusable, isCached, items, limit, polls, polledAt, provenUpTo, monotonicTimeOf, ending },
    ...{ kind, counts, asOf, endClaimed, loadings },
    ...times,
    deliveries: entries.flatMap(({ accepted: { run } }) =>
      stored.has(run.scanId) && run.deliveredAt !== null ? [monotonicTimeOf(run.deliveredAt)] : [],
    ),
    lacksMemory: entries.some(({ accepted }) => accepted.pending === 'no_memory'),
  };
}
