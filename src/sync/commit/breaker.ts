import type { Failure } from '../../core/errors.js';
import type { PolledPage } from '../page/page.js';
import type { FeedStore, QuarantineEntry } from '../ports/index.js';

/** How much of a page is unusable. */
export interface PageQuality {
  readonly entries: number;
  /** Entries that would be quarantined, by reason; those that a constraint refuses, by its name. */
  readonly bad: Readonly<Record<string, number>>;
}

/** Minimum number of pages to judge together, including the current one. */
const MIN_PAGES = 3;
/** Minimum number of entries to judge. If pages are small, more of them are included. */
const MIN_ENTRIES = 100;

/** At least half of the recent entries are unusable, so their shape has changed. The feed holds instead of quarantining them. */
export class MostlyBad extends Error implements Failure {
  override readonly name = 'MostlyBad';
  readonly kind = 'mostly_bad';
  readonly action = 'hold';
  constructor(pages: readonly PageQuality[]) {
    const reasons = reasonsOf(pages);
    const [cause, remedy] = reasons.includes(CONSTRAINT) ? OF_DATABASE : OF_SERVICE;
    super(
      `${sum(pages.map(badOf))} of the last ${sum(pages.map(({ entries }) => entries))} entries of the feed are unusable (${reasons}): ${cause}. The page is neither stored nor skipped, and is requested again. ${remedy}`,
    );
  }
}

const CONSTRAINT = 'constraint ';
const OF_SERVICE = [
  'the service has probably changed what it sends',
  'Ask the operators of the service what changed, or use a release of scanfeed that supports it',
] as const;
const OF_DATABASE = [
  'a constraint of the database refuses them',
  'Drop the constraint if it was added to the tables of scanfeed, as `scanfeed doctor` shows',
] as const;

export type Breaker = ReturnType<typeof createBreaker>;

/** Holds a feed or a pass if most of its entries are unusable, so that they are not all quarantined (promise 5). */
export function createBreaker() {
  let earlier: readonly PageQuality[] = [];
  return {
    /**
     * Checks whether entries of this page may be quarantined. Changes nothing, so the same page may be checked again.
     * @throws MostlyBad
     */
    check: (page: PageQuality): void => {
      const pages = latestPages([...earlier, page]);
      if (badOf(page) > 0 && isMostlyBad(pages)) throw new MostlyBad(pages);
    },
    /** Called after the commit of a page. */
    committed: (page: PageQuality): void => {
      if (page.entries > 0) earlier = latestPages([...earlier, page]);
    },
  };
}

/** Returns the quality of a page if these entries of it are quarantined. */
export function qualityOf({ items }: Pick<PolledPage, 'items'>, quarantine: readonly QuarantineEntry[]): PageQuality {
  const bad: Record<string, number> = {};
  for (const { state, reason, detail } of quarantine) {
    const shown = reason === 'constraint' ? detail : reason;
    if (state === 'open') bad[shown] = (bad[shown] ?? 0) + 1;
  }
  return { entries: items, bad };
}

/**
 * Returns the same without entries that are in the feed's quarantine already: they do not show that something changed.
 * Queries the store only if there are bad entries.
 */
export async function qualityOfNew(
  page: Pick<PolledPage, 'items'>,
  quarantine: readonly QuarantineEntry[],
  feed: string,
  store: Pick<FeedStore, 'notYetQuarantined'>,
): Promise<PageQuality> {
  return qualityOf(page, quarantine.length === 0 ? [] : await store.notYetQuarantined(feed, quarantine));
}

/** Returns the last pages that are judged together. */
function latestPages(pages: readonly PageQuality[]): readonly PageQuality[] {
  let first = pages.length;
  for (let entries = 0; first > 0 && (pages.length - first < MIN_PAGES || entries < MIN_ENTRIES); ) {
    first -= 1;
    entries += pages[first]?.entries ?? 0;
  }
  return pages.slice(first);
}

function isMostlyBad(pages: readonly PageQuality[]): boolean {
  const entries = sum(pages.map((page) => page.entries));
  return entries >= MIN_ENTRIES && sum(pages.map(badOf)) * 2 >= entries;
}

function badOf({ bad }: PageQuality): number {
  return sum(Object.values(bad));
}

/** Returns the reasons with their counts, the most frequent first: `status 180, revision 3`. */
function reasonsOf(pages: readonly PageQuality[]): string {
  const counts = new Map<string, number>();
  for (const { bad } of pages) {
    for (const [reason, count] of Object.entries(bad)) counts.set(reason, (counts.get(reason) ?? 0) + count);
  }
  const ordered = [...counts].sort(([, a], [, b]) => b - a);
  return ordered.map(([reason, count]) => `${reason} ${count}`).join(', ');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
