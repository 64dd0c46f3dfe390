import type { Failure } from '../../core/errors.js';
import type { QuarantineEntry } from '../ports/index.js';

/** How much of a page is unusable. */
interface PageQuality {
  readonly entries: number;
  /** The reasons of the entries that would be quarantined; if a constraint refuses an entry, its name. */
  readonly bad: readonly string[];
}

/** Minimum number of pages to judge together, including the current one. */
const MIN_PAGES = 3;
/** Minimum number of entries to judge. If pages are small, more of them are included. */
const MIN_ENTRIES = 100;

/** At least half of the recent entries are unusable, so their shape has changed. The feed holds instead of quarantining them. */
class MostlyBad extends Error implements Failure {
  override readonly name = 'MostlyBad';
  readonly kind = 'mostly_bad';
  readonly action = 'hold';
  constructor(pages: readonly PageQuality[]) {
    const reasons = pages.flatMap(({ bad }) => bad);
    const [cause, remedy] = reasons.some(isConstraint) ? OF_DATABASE : OF_SERVICE;
    super(
      `${reasons.length} of the last ${sum(pages.map(({ entries }) => entries))} entries of the feed are unusable (${countedReasons(reasons)}): ${cause}. The page is neither stored nor skipped, and is requested again. ${remedy}`,
    );
  }
}

const OF_SERVICE = [
  'the service has probably changed what it sends',
  'Ask the operators of the service what changed, or use a release of scanfeed that supports it. Meanwhile `scanfeed quarantine accept` lets the feed continue without them',
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
     * Checks whether entries of a page can be quarantined. Changes nothing, so the same page can be checked again.
     * @param entries the number of its entries
     * @param unusable those that are not in quarantine yet; others do not show that something changed
     * @throws MostlyBad
     */
    check: (entries: number, unusable: readonly QuarantineEntry[]): void => {
      const page = qualityOf(entries, unusable);
      const pages = latestPages([...earlier, page]);
      if (page.bad.length > 0 && isMostlyBad(pages)) throw new MostlyBad(pages);
    },
    /** Called after the commit of a page, like `check`. */
    committed: (entries: number, unusable: readonly QuarantineEntry[]): void => {
      if (entries > 0) earlier = latestPages([...earlier, qualityOf(entries, unusable)]);
    },
  };
}

function qualityOf(entries: number, unusable: readonly QuarantineEntry[]): PageQuality {
  const open = unusable.filter(({ state }) => state === 'open');
  return { entries, bad: open.map(({ reason, detail }) => (isConstraint(reason) ? detail : reason)) };
}

/** Returns whether a reason, or the name of a constraint that is shown in its place, means that the database refuses the entry. */
function isConstraint(reason: string): boolean {
  return reason.startsWith('constraint');
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
  const bad = sum(pages.map((page) => page.bad.length));
  return entries >= MIN_ENTRIES && bad * 2 >= entries;
}

/** Returns the reasons with their counts, the most frequent first: `status 180, revision 3`. */
function countedReasons(reasons: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const ordered = [...counts].sort(([, a], [, b]) => b - a);
  return ordered.map(([reason, count]) => `${reason} ${count}`).join(', ');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
