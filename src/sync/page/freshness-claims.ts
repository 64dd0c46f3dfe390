import type { FreshnessClaim } from '../ports/index.js';
import type { CheckedPage } from './page.js';

/**
 * Derives from the pages of a feed, in order, what their commits can claim (promise 10). At the end of the feed, that is the time of
 * the poll. Before it, only delivery times show how far the feed was read, and the clock that sets them may differ from any other.
 * So they are only compared with each other: the first entry after an end was delivered after the poll that found this end, and
 * each later one by as much later as its delivery time is. Before the first end, nothing is claimed.
 *
 * Example: the end was found by a poll at 10:00:00. The next entries have the delivery times 12:00:05 and 12:00:25, by a clock that may
 * be hours ahead. The first was delivered at 10:00:00 or later, so the second was at 10:00:20 or later: a page that ends with it
 * claims that everything before 10:00:20 is stored, unless the service's clock shows that this is too late.
 *
 * The commit claims less in four cases: a page requested by the time of a rewind claims nothing (`storage/commit/commit-page.ts`); nor does
 * one whose time cannot be compared with the database's clock (`storage/connection/database-clock.ts`); a claim is forgotten when that
 * clock was set back (`storage/tables/lease-columns.ts`), and when a history ends that was read by time (`storage/commit/pass-page.ts`).
 */
export function createFreshnessClaims() {
  /** When the poll that found the last end was sent; null if an entry followed. */
  let endAt: number | null = null;
  /** Maximum lead of delivery times over monotonic ones, milliseconds; null while unknown. */
  let aheadMs: number | null = null;
  let latest: Date | null = null;
  return {
    /** Returns what the commit of the next page can claim. */
    next: (page: CheckedPage): Omit<FreshnessClaim, 'end'> => {
      const { provenUpTo, polledAt } = page;
      const first = latest === null ? null : firstDelivery(page, latest);
      if (endAt !== null && first !== null) aheadMs = first.getTime() - endAt;
      // Of the first entries that a leader reads, nothing shows that they were not listed before: cursors may go back.
      if (first !== null || (latest === null && page.items > 0)) endAt = null;
      latest = latestDelivery(page, latest);
      if (provenUpTo === null || aheadMs === null) return { polledAt, completeUpTo: null, lastDeliveredAt: provenUpTo };
      aheadMs = Math.max(aheadMs, provenUpTo.getTime() - polledAt);
      // The next page may begin with an entry of the same time.
      const completeUpTo = Math.min(page.monotonicTimeOf(provenUpTo), provenUpTo.getTime() - aheadMs) - 1;
      return { polledAt, completeUpTo, lastDeliveredAt: provenUpTo };
    },
    /**
     * Called when nothing followed a page: it was the end of the feed, or as short as the end. A page requested with `since` may
     * hide entries that were delivered before and are listed later, because the service may apply it to another time (interface 4.2).
     */
    ended: ({ polledAt, at }: Pick<CheckedPage, 'polledAt' | 'at'>): void => {
      endAt = at.cursor === null && at.since !== null ? null : polledAt;
    },
    /** Called when the next page is not the one after the last page. */
    moved: (): void => {
      endAt = null;
    },
  };
}

/** Returns the first delivery that a page proves and that is later than every entry before; null if there is none. */
function firstDelivery({ entries, provenUpTo }: CheckedPage, latest: Date): Date | null {
  for (const { accepted } of entries) {
    const { deliveredAt, revision } = accepted.run;
    if (revision !== 1 || deliveredAt === null || deliveredAt <= latest) continue;
    return provenUpTo !== null && deliveredAt <= provenUpTo ? deliveredAt : null;
  }
  return null;
}

/** An entry that is still in the future by our clock counts too: it may be listed again when it no longer is. */
function latestDelivery({ entries, possibleDelivery }: CheckedPage, before: Date | null): Date | null {
  let latest = before;
  for (const { accepted } of entries) {
    const deliveredAt = possibleDelivery(accepted.run.deliveredAt);
    if (deliveredAt !== null && (latest === null || deliveredAt > latest)) latest = deliveredAt;
  }
  return latest;
}
