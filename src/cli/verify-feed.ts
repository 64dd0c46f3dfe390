import { readStatus } from '../storage/status.js';
import { type DeadEnd, type EndVerdict, findDeadEnd, isDeadEnd, isEndOfFeed, isRepeated } from '../sync/end-of-feed.js';
import type { DraftEntry } from '../sync/page-draft.js';
import type { Clock, FeedService, Position } from '../sync/ports.js';
import { type FetchedPage, type ReadSettings, readPage } from '../sync/read-page.js';
import { createRecentCursors } from '../sync/recent-cursors.js';
import { CommandFailure, EXIT } from './exit.js';
import { type Patience, patiently } from './patiently.js';
import { type Verified, verifyPage } from './verify-page.js';
import type { FeedAtWork } from './with-feed.js';

/**
 * Clocks are compared to whole seconds, and within the time that an answer takes (see `service-clock.ts`): so close to
 * the edge nothing is said to be missing.
 */
const EDGE_MS = 3_000;
/** Maximum number of empty pages in a row that do not show whether they are the end of the feed. */
const MOST_UNCLEAR_PAGES = 100;
/** Maximum number of polls of one position that leads nowhere. */
const MOST_POLLS = 5;

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
    const { page, answeredInMs, verdict } = await readUntilClear(at, read, service, patience, signal);
    const edgeMs = EDGE_MS + answeredInMs;
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
    if (past || verdict === 'end') return;
    unclearPages = verdict === 'unclear' ? unclearPages + 1 : 0;
    if (isDeadEnd(page) || unclearPages > MOST_UNCLEAR_PAGES || recent.seen(page.next)) {
      throw new CommandFailure(
        `the cursor of the service leads no further after ${last.toISOString()}; what comes later was not compared`,
        EXIT.tryAgain,
      );
    }
    at = { cursor: page.next, since: null };
  }
}

interface ClearPage {
  readonly page: FetchedPage;
  /** Time between the poll and its answer, milliseconds. */
  readonly answeredInMs: number;
  readonly verdict: EndVerdict;
}

/**
 * Reads the page at a position. A page whose cursor is missing or did not move is asked for again until it leads on, or until
 * a short page repeats: that is the end of the feed, as for the daemon ({@link findDeadEnd}). A full page without a cursor is
 * asked for with another limit. Returns the last page read.
 */
async function readUntilClear(
  at: Position,
  read: ReadSettings,
  service: FeedService,
  patience: Patience,
  signal: AbortSignal,
): Promise<ClearPage> {
  const { clock } = patience;
  let before: FetchedPage | null = null;
  let deadEnd: DeadEnd | null = null;
  for (let polls = 1; ; polls += 1) {
    const asked: ReadSettings = { ...read, pageLimit: deadEnd?.limit ?? read.pageLimit };
    const page: FetchedPage = await patiently(() => readPage(service, asked, clock, at, signal), patience);
    const answeredInMs = clock.monotonic() - page.polledAt;
    const verdict = await patiently(() => isEndOfFeed(page, read.filters, service, signal), patience);
    const clear = { page, answeredInMs, verdict };
    if (verdict !== 'more' || !isDeadEnd(page) || polls === MOST_POLLS) return clear;
    const found = await patiently(() => findDeadEnd(page, read.filters, service, signal), patience);
    if (before !== null && isRepeated(found, deadEnd) && !hasNewEntries(page, before)) {
      return { ...clear, verdict: 'end' };
    }
    before = page;
    deadEnd = found;
  }
}

/** Whether a page lists what the page before did not. Pure. */
function hasNewEntries({ draft }: FetchedPage, before: FetchedPage): boolean {
  const listed = new Set(before.draft.entries.map(identityOf));
  return draft.items !== before.draft.items || draft.entries.some((entry) => !listed.has(identityOf(entry)));
}

function identityOf({ accepted: { run } }: DraftEntry): string {
  return `${run.scanId}#${run.revision}`;
}
