import type { PageDraft } from './page-draft.js';
import type { FeedStore, QuarantineEntry, Trouble } from './ports.js';

/** How much of a page is unusable. */
export interface PageQuality {
  readonly entries: number;
  /** Entries that would be quarantined, by reason. */
  readonly bad: Readonly<Record<string, number>>;
}

/** Pages that are looked at together at least, the present one among them. */
const PAGES = 3;
/** Fewer entries say nothing about the feed: of small pages so many more are looked at. */
const ENTRIES = 100;

/** At least half of what the feed lately delivered is unusable: its shape has changed. Held instead of quarantined. */
export class MostlyBad extends Error implements Trouble {
  override readonly name = 'MostlyBad';
  readonly kind = 'mostly_bad';
  readonly remedy = 'hold';
  constructor(pages: readonly PageQuality[]) {
    super(
      `${sum(pages.map(badOf))} of the last ${sum(pages.map(({ entries }) => entries))} entries of the feed are unusable (${reasonsOf(pages)}): the service has probably changed what it sends. The page is neither stored nor passed by, and is looked at again. Ask the operators of the service what changed, or use a release of scanfeed that knows it`,
    );
  }
}

/** Keeps a feed that turns bad from being quarantined as a whole (promise 5). One for each stretch of pages read in a row. */
export interface Breaker {
  /**
   * Whether this page may be quarantined from. Changes nothing, so a page that is held may be asked about again.
   * @throws MostlyBad
   */
  check(page: PageQuality): void;
  /** The page was committed. */
  committed(page: PageQuality): void;
}

export function createBreaker(): Breaker {
  let earlier: readonly PageQuality[] = [];
  return {
    check: (page) => {
      const pages = latest([...earlier, page]);
      if (badOf(page) > 0 && isMostlyBad(pages)) throw new MostlyBad(pages);
    },
    committed: (page) => {
      if (page.entries > 0) earlier = latest([...earlier, page]);
    },
  };
}

/** The quality of a page, of which these entries would go to quarantine. */
export function qualityOf({ items }: Pick<PageDraft, 'items'>, quarantine: readonly QuarantineEntry[]): PageQuality {
  const bad: Record<string, number> = {};
  for (const { state, reason } of quarantine) {
    if (state === 'open') bad[reason] = (bad[reason] ?? 0) + 1;
  }
  return { entries: items, bad };
}

/**
 * The same without the entries that are in the feed's quarantine already, long ago perhaps: they are no sign of a change.
 * Asks the store only about what is bad.
 */
export async function qualityOfNew(
  draft: Pick<PageDraft, 'items'>,
  quarantine: readonly QuarantineEntry[],
  feed: string,
  store: Pick<FeedStore, 'notYetQuarantined'>,
): Promise<PageQuality> {
  return qualityOf(draft, quarantine.length === 0 ? [] : await store.notYetQuarantined(feed, quarantine));
}

/** The last pages, as many as are looked at together. */
function latest(pages: readonly PageQuality[]): readonly PageQuality[] {
  let first = pages.length;
  for (let entries = 0; first > 0 && (pages.length - first < PAGES || entries < ENTRIES); ) {
    first -= 1;
    entries += pages[first]?.entries ?? 0;
  }
  return pages.slice(first);
}

function isMostlyBad(pages: readonly PageQuality[]): boolean {
  const entries = sum(pages.map((page) => page.entries));
  return entries >= ENTRIES && sum(pages.map(badOf)) * 2 >= entries;
}

function badOf({ bad }: PageQuality): number {
  return sum(Object.values(bad));
}

/** `status 180, revision 3`: the most frequent first. Reasons are words of a fixed set. */
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
