import type { Clock } from '../../core/clock.js';
import { createStatus } from '../../storage/feeds/status.js';
import { isDeadEnd } from '../../sync/page/end-of-feed.js';
import { checkAnsweredPage } from '../../sync/page/read-page.js';
import { type Step, walkFeed } from '../../sync/page/walk-feed.js';
import type { FeedService } from '../../sync/ports/index.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import type { FeedAtWork } from '../context/with-feed.js';
import { type RetryOptions, withRetries } from '../context/with-retries.js';
import { type Verified, verifyPage } from './verify-page.js';

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
  const { connection, feed, settings } = work;
  const read = { ...settings.feed, markdown: false };
  const status = await createStatus(connection, clock.monotonic).readStatus(feed.name);
  const completeTo = status.readAt - (status.lagMs ?? Number.POSITIVE_INFINITY);
  const walk = walkFeed({ cursor: null, since }, { service, read, clock }, new AbortController().signal);
  const retryOptions = { clock, onPause };
  let deliveredUpTo = since;
  let unclearPages = 0;
  for (;;) {
    const { page: answered, progress } = await takeClearStep(walk, retryOptions);
    const page = checkAnsweredPage(answered);
    const edgeMs = EDGE_MS + answered.times.receivedAt - answered.times.polledAt;
    const entries = await withRetries(() => verifyPage(page.checked, work), retryOptions);
    const last = page.provenUpTo ?? deliveredUpTo;
    // What has no delivery time of its own lies no later than the page's last.
    const when = ({ deliveredAt }: Verified) => deliveredAt ?? last;
    const wanted = entries.filter((entry) => until === null || when(entry) <= until);
    const due = wanted.filter((entry) => page.monotonicTimeOf(when(entry)) <= completeTo - edgeMs);
    deliveredUpTo = last;
    yield { compared: due, tooNew: wanted.length - due.length, deliveredUpTo };
    const tooNew = page.provenUpTo !== null && wanted.length > 0 && due.length === 0;
    const past = (until !== null && last > until) || tooNew;
    if (past || progress === 'end') return;
    unclearPages = progress === 'unclear' ? unclearPages + 1 : 0;
    if (isDeadEnd(page) || progress === 'stuck' || unclearPages > MOST_UNCLEAR_PAGES) {
      throw new CommandFailure(
        `the cursor of the service leads no further after ${last.toISOString()}; what comes later was not compared`,
        EXIT.tryAgain,
      );
    }
  }
}

/** Takes the next step; a page whose cursor is missing or did not move is requested again until it leads on or is the end. */
async function takeClearStep(walk: () => Promise<Step>, retryOptions: RetryOptions): Promise<Step> {
  for (let polls = 1; ; polls += 1) {
    const step = await withRetries(walk, retryOptions);
    if (step.progress === 'end' || !isDeadEnd(step.page) || polls === MOST_POLLS) return step;
  }
}
