import { isValueRefused } from '../../core/errors.js';
import type { FeedContext } from '../context.js';
import { batchOf } from '../page/check-entries.js';
import { type CheckedPage, committedPage, type PageOutcome } from '../page/page.js';
import type { CommitOutcome, FeedMove, FeedStore, LeaseGrant, PageContent, PassMove } from '../ports/index.js';
import { type Breaker, type PageQuality, pageQuality } from './breaker.js';
import { findRefused, type SplitEntries } from './find-refused.js';

/** The feed or the pass whose pages are stored. */
export interface PageTarget {
  readonly lease: LeaseGrant;
  readonly breaker: Breaker;
  /** Maximum number of commits at the same time. In the database, the second one waits for the first. */
  readonly maxCommits: number;
  /** Called before each step that may take some time: a wait for a page, a statement. */
  onStep?(): void;
  /**
   * Returns how the commit of a page moves the position, and what it claims. Called once for each page, in order: what a page may
   * claim about freshness depends on those before it.
   */
  moveBy(page: CheckedPage): FeedMove | PassMove;
}

/**
 * Stores a page with its position in one commit, and releases its memory. If PostgreSQL refuses a value, the page is committed
 * with the entries that have such values in quarantine.
 * @param send sends the statement of a commit, perhaps more than once
 * @throws MostlyBad
 */
export async function storePage(
  page: CheckedPage,
  target: PageTarget,
  { store, clock }: Pick<FeedContext, 'store' | 'clock'>,
  signal: AbortSignal,
  send: (statement: () => Promise<CommitOutcome>) => Promise<CommitOutcome>,
): Promise<PageOutcome> {
  const move = target.moveBy(page);
  const commitBegunAt = clock.monotonic();
  const commit = async (split: SplitEntries): Promise<PageOutcome> => {
    const content = contentOf(page, split);
    const quality = await findQuality(page, content, target, store);
    await assertMostlyUsable(quality, target, store);
    const outcome = await send(() => {
      target.onStep?.();
      return 'id' in move ? store.commitPass({ ...move, ...content }) : store.commitPage({ ...move, ...content });
    });
    if (outcome.kind === 'fenced') return outcome;
    target.breaker.committed(quality);
    return committedPage(page, split.storable, outcome, { commitBegunAt, committedAt: clock.monotonic() });
  };
  try {
    return await commit({ storable: page.entries, refused: [] });
  } catch (error) {
    if (!isValueRefused(error) || page.entries.length === 0) throw error;
    const split = await findRefused(page.entries, signal, (batch) => {
      target.onStep?.();
      return store.tryEntries(target.lease, batch);
    });
    return await commit(split);
  } finally {
    page.release();
  }
}

function contentOf(page: CheckedPage, { storable, refused }: SplitEntries): PageContent {
  // The results that were loaded for the entries, as they were before their text was repaired.
  const originals = storable.flatMap(({ result }) => result?.original ?? []);
  return { batch: batchOf(storable), quarantine: [...page.quarantine, ...refused, ...originals] };
}

/** Returns how much of a page is unusable. Entries that are already in quarantine do not count. */
async function findQuality(
  { items }: CheckedPage,
  { quarantine }: PageContent,
  { lease }: PageTarget,
  store: FeedStore,
): Promise<PageQuality> {
  const added = quarantine.length === 0 ? [] : await store.notYetQuarantined(lease.feed, quarantine);
  return pageQuality(items, added);
}

/** @throws MostlyBad if most of the recent entries are unusable, unless an operator accepts it */
async function assertMostlyUsable(
  quality: PageQuality,
  { lease, breaker }: PageTarget,
  store: FeedStore,
): Promise<void> {
  try {
    breaker.check(quality);
  } catch (mostlyBad) {
    const { acceptsBadUntil } = await store.readStatus(lease.feed);
    if (acceptsBadUntil === null) throw mostlyBad;
  }
}
