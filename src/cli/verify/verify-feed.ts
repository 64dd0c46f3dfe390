import type { Clock } from '../../core/clock.js';
import { createStatus } from '../../storage/feeds/status.js';
import { checkPage } from '../../sync/page/check-page.js';
import { isDeadEnd } from '../../sync/page/end-of-feed.js';
import { possibleDelivery } from '../../sync/page/service-clock.js';
import { type Step, walkFeed } from '../../sync/page/walk-feed.js';
import type { FeedService } from '../../sync/ports/index.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import type { FeedCommandContext } from '../context/with-feed.js';
import { type RetryOptions, withRetries } from '../context/with-retries.js';
import { type Verified, verifyPage } from './verify-page.js';

/**
 * Tolerance at the time up to which the data is complete, milliseconds. Clocks are compared in whole seconds and within the
 * duration of a response (see `service-clock.ts`), so entries this close to the edge are not expected yet.
 */
const EDGE_MS = 3_000;
/** Maximum number of empty pages in a row that do not show whether they are the end of the feed. */
const MAX_UNCLEAR_PAGES = 100;
/** Maximum number of polls of a position that does not advance. */
const MAX_POLLS = 5;

export interface VerifyOptions {
  readonly since: Date;
  readonly until: Date | null;
  readonly onPause: (message: string) => void;
}

export interface VerifiedPage {
  readonly compared: readonly Verified[];
  /** Number of entries that are not expected in the database yet: delivered after the time up to which the data is complete. */
  readonly tooNew: number;
  readonly deliveredUpTo: Date;
}

/**
 * Reads the feed from a delivery time to its end, or until a time, and compares every entry with the database. The time up to
 * which entries are expected is read once, before the first page. Writes nothing and takes no lease.
 */
export async function* verifyFeed(
  work: FeedCommandContext,
  service: FeedService,
  { since, until, onPause }: VerifyOptions,
  clock: Clock,
): AsyncGenerator<VerifiedPage> {
  const { connection, feed, settings } = work;
  const { filters, markdown, pageLimit: pageSize } = settings.feed;
  const read = { filters, markdown, pageSize };
  const status = await createStatus(connection, clock.monotonic).readStatus(feed.name);
  const completeTo = status.readAt - (status.lagMs ?? Number.POSITIVE_INFINITY);
  const walk = walkFeed({ cursor: null, since }, { service, read, clock }, new AbortController().signal);
  const retryOptions = { clock, onPause };
  let deliveredUpTo = since;
  let unclearPages = 0;
  for (;;) {
    const { page: answered, next } = await takeClearStep(walk, retryOptions);
    const page = checkPage(answered);
    const edgeMs = EDGE_MS + answered.times.receivedAt - answered.times.polledAt;
    const entries = await withRetries(() => verifyPage(page, work), retryOptions);
    const last = page.provenUpTo ?? deliveredUpTo;
    // An entry without a possible delivery time was delivered no later than the last entry of its page.
    const when = ({ deliveredAt }: Verified) => possibleDelivery(deliveredAt, clock.now()) ?? last;
    const wanted = entries.filter((entry) => until === null || when(entry) <= until);
    const due = wanted.filter((entry) => page.monotonicTimeOf(when(entry)) <= completeTo - edgeMs);
    deliveredUpTo = last;
    yield { compared: due, tooNew: wanted.length - due.length, deliveredUpTo };
    const tooNew = page.provenUpTo !== null && wanted.length > 0 && due.length === 0;
    const past = (until !== null && last > until) || tooNew;
    if (past || next === 'end') return;
    unclearPages = next === 'unclear' ? unclearPages + 1 : 0;
    if (isDeadEnd(page) || next === 'stuck' || unclearPages > MAX_UNCLEAR_PAGES) {
      throw new CommandFailure(
        `the cursor of the service does not advance after ${last.toISOString()}; later entries were not compared`,
        EXIT.tryAgain,
      );
    }
  }
}

/** Takes the next step. A page whose cursor is missing or did not move is requested again until it advances or is the end. */
async function takeClearStep(walk: () => Promise<Step>, retryOptions: RetryOptions): Promise<Step> {
  for (let polls = 1; ; polls += 1) {
    const step = await withRetries(walk, retryOptions);
    if (step.next === 'end' || !isDeadEnd(step.page) || polls === MAX_POLLS) return step;
  }
}
