import { readStatus } from '../storage/status.js';
import { isEndOfFeed } from '../sync/end-of-feed.js';
import type { Clock, FeedService, Position } from '../sync/ports.js';
import { type FetchedPage, readPage } from '../sync/read-page.js';
import { createRecentCursors } from '../sync/recent-cursors.js';
import { CommandFailure, EXIT } from './exit.js';
import { patiently } from './patiently.js';
import { type Verified, verifyPage } from './verify-page.js';
import type { FeedAtWork } from './with-feed.js';

/**
 * Clocks are compared to whole seconds, and within the time that an answer takes (see `service-clock.ts`): so close to
 * the edge nothing is said to be missing.
 */
const EDGE_MS = 3_000;
/** Maximum number of pages in a row without entries that may be the end of the feed, or not. */
const MOST_UNCLEAR_PAGES = 100;

export interface VerifyOptions {
  readonly since: Date;
  readonly until: Date | null;
  /** Told in one line what is waited for. */
  readonly onPause: (said: string) => void;
}

/** What one page showed. */
export interface VerifiedPage {
  readonly compared: readonly Verified[];
  /** Entries that the database need not have yet: delivered after the time that the data is complete to. */
  readonly tooNew: number;
  /** Delivery time up to which was read so far. */
  readonly deliveredUpTo: Date;
}

/**
 * Reads the feed from a delivery time to its end, or until a time, and compares every entry with the database. The edge of
 * what must be there is taken once, before the first page. Writes nothing, and takes no lease.
 */
export async function* verifyFeed(
  work: FeedAtWork<never>,
  service: FeedService,
  { since, until, onPause }: VerifyOptions,
  clock: Clock,
): AsyncGenerator<VerifiedPage> {
  const { database, tables, feed, settings } = work;
  const read = { ...settings.feed, markdown: false };
  const { signal } = new AbortController();
  const status = await readStatus(database.sql, tables, feed.name, clock.monotonic);
  const completeTo = status.readAt - (status.lagMs ?? Number.POSITIVE_INFINITY);
  const recent = createRecentCursors();
  const patience = { clock, onPause };
  let deliveredUpTo = since;
  let unclearPages = 0;
  for (let at: Position = { cursor: null, since }; ; ) {
    const from = at;
    const page = await patiently(() => readPage(service, read, clock, from, signal), patience);
    const edgeMs = EDGE_MS + clock.monotonic() - page.polledAt;
    const entries = await patiently(() => verifyPage(page.draft, work), patience);
    const last = page.provenUpTo ?? deliveredUpTo;
    // What has no delivery time of its own lies no later than the page's last.
    const when = ({ deliveredAt }: Verified) => deliveredAt ?? last;
    const wanted = entries.filter((entry) => until === null || when(entry) <= until);
    const due = wanted.filter((entry) => page.instantOf(when(entry)) <= completeTo - edgeMs);
    deliveredUpTo = last;
    yield { compared: due, tooNew: wanted.length - due.length, deliveredUpTo };
    const tooNew = page.provenUpTo !== null && wanted.length > 0 && due.length === 0;
    const past = (until !== null && last > until) || tooNew;
    const verdict = await patiently(() => isEndOfFeed(page, settings.feed.filters, service, signal), patience);
    if (past || verdict === 'end') return;
    unclearPages = verdict === 'unclear' ? unclearPages + 1 : 0;
    if (leadsNowhere(page) || unclearPages > MOST_UNCLEAR_PAGES || recent.seen(page.next)) {
      if (verdict === 'more' && page.draft.items < page.limit) return;
      throw new CommandFailure(
        `the cursor of the service leads no further after ${last.toISOString()}; what comes later was not compared`,
        EXIT.tryAgain,
      );
    }
    at = { cursor: page.next, since: null };
  }
}

function leadsNowhere({ next, at }: FetchedPage): boolean {
  return next === null || next === at.cursor;
}
