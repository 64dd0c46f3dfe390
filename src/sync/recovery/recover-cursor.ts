import { classifyError, type Failure } from '../../core/errors.js';
import type { FeedContext, LeaderContext } from '../context.js';
import type { Priority } from '../memory/memory-budget.js';
import { checkPage } from '../page/check-page.js';
import { cursorRejection } from '../page/cursors.js';
import { createPageLimit, isOversized } from '../page/page-limit.js';
import { listsAnything, type Probe, readServiceDate } from '../page/probe.js';
import { receivePageWithin } from '../page/read-page.js';
import type { FeedRun, FeedStart, LeaseGrant, Position } from '../ports/index.js';

/** Maximum number of stored runs to request by their ids. */
const MAX_CHECKED_RUNS = 3;
/** How far before the last delivery that was read the feed resumes if no earlier cursor is accepted, milliseconds. */
const FALLBACK_OVERLAP_MS = 24 * 3_600_000;

/** The service knows none of the stored runs with this key: continuing would mix two organizations. The feed holds. */
class AnotherOrganization extends Error implements Failure {
  override readonly name = 'AnotherOrganization';
  readonly kind = 'another_organization';
  readonly action = 'hold';
  constructor() {
    super(
      'the service rejects the stored cursor. Without a cursor, the feed lists other runs than those stored for the same delivery times, and the service finds none of the stored runs by scan id: the key probably belongs to another organization. Use the key of the organization whose runs are stored, or another database schema',
    );
  }
}

/**
 * Replaces a rejected cursor (promise 8). If the same filters are refused without a cursor too, the settings are wrong, and the
 * refusal is thrown again. It is also thrown again if the cursor is accepted after all. Otherwise the feed falls back to the
 * newest earlier cursor that is still accepted, else to a day before its last delivery, else to its beginning.
 */
export async function recoverCursor(
  refusal: unknown,
  cursor: string,
  lease: LeaseGrant,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<void> {
  const { store, observer } = context;
  observer.ticked(context.settings.stepMs);
  const serviceDate = await readServiceDate(probeOf({ beginning: true }, context), 'feed', context, signal).catch(
    (error) => {
      if (isOversized(error)) return null; // accepted without the cursor; only the date is unknown
      throw cursorRejection(error) === null ? error : refusal;
    },
  );
  if (!(await isRejected(cursor, refusal, context, signal))) throw refusal;
  const { cursors, deliveredUpTo, startSince } = await store.readEarlierPositions(lease.feed);
  observer.ticked(context.settings.stepMs);
  const read = { deliveredUpTo, startSince, feed: lease.feed };
  const overlap = await findOverlap(read, refusal, serviceDate, 'feed', context, signal);
  const to = (await findNewestAccepted(cursors, context, signal)) ?? overlap ?? { cursor: null, since: null };
  if (await store.movePosition(lease, cursor, to)) observer.cursorReset(to);
}

/** How far the feed or a pass was read. */
interface ReadRange {
  readonly deliveredUpTo: Date | null;
  readonly startSince: Date | null;
  readonly feed: string;
}

/**
 * Finds a position a day before the last delivery that was read, or at the start; null if it may skip unread entries. The time is never
 * ahead of the service's clock, which may have gone back: nothing is listed there.
 * @param refusal of the rejected cursor; thrown if it remains unclear whether the key belongs to another organization
 * @throws AnotherOrganization
 */
export async function findOverlap(
  { deliveredUpTo, startSince, feed }: ReadRange,
  refusal: unknown,
  serviceDate: Date | null,
  priority: Priority,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<Position | null> {
  if (deliveredUpTo === null) return null;
  const serviceNow = serviceDate?.getTime() ?? context.clock.now();
  const before = new Date(Math.min(deliveredUpTo.getTime(), serviceNow) - FALLBACK_OVERLAP_MS);
  const since = startSince !== null && startSince > before ? startSince : before;
  const { runs } = await readAt({ cursor: null, since }, priority, context, signal).catch((error) => {
    if (classifyError(error).kind === 'http_400') return { runs: [] };
    throw error;
  });
  if (!(await isSameOrganization(runs, since, deliveredUpTo, feed, context, signal))) throw refusal;
  return findPositionWithin(since, deliveredUpTo, priority, context, signal);
}

/**
 * Finds a position near a time from which no unread entry is skipped. The interface does not define which time of a run `since`
 * applies to, nor whether its page has all entries, so a time may skip unread entries. The cursor of a page with one entry
 * skips none if an entry of revision 1 that was read is listed after it, because such an entry is sorted by its delivery time.
 * That time must be earlier than the last one that was read, since other entries of the same millisecond may be unread.
 * Returns null if no entry proves it.
 */
async function findPositionWithin(
  since: Date,
  deliveredUpTo: Date,
  priority: Priority,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<Position | null> {
  const ofOne = { ...context, read: { ...context.read, limit: createPageLimit(1, context.budget.bytes) } };
  try {
    const { next } = await readAt({ cursor: null, since }, priority, ofOne, signal);
    if (next === null) return null;
    const within = { cursor: next, since: null };
    const { runs } = await readAt(within, priority, context, signal);
    const isRead = ({ revision, deliveredAt }: FeedRun) =>
      revision === 1 && deliveredAt !== null && deliveredAt < deliveredUpTo;
    return runs.some(isRead) ? within : null;
  } catch (error) {
    if (cursorRejection(error) === null) throw error;
    return null;
  }
}

function probeOf(start: FeedStart, { settings }: FeedContext): Probe {
  return { filters: settings.identity.filters, start };
}

/**
 * Returns whether the service rejects a cursor after this error. A 400 is always a rejection. After any other refusal, the
 * service must accept the same filters without the cursor, and then refuse the cursor once more.
 * @throws the failure of the request without the cursor, which is not about the cursor
 */
export async function isRejected(
  cursor: string,
  refusal: unknown,
  context: FeedContext,
  signal: AbortSignal,
): Promise<boolean> {
  if (cursorRejection(refusal) === 'certain') return true;
  await listsAnything(context.service, probeOf({ beginning: true }, context), signal);
  try {
    await listsAnything(context.service, probeOf({ cursor }, context), signal);
    return false;
  } catch (error) {
    if (cursorRejection(error) === null) throw error;
    return true;
  }
}

/** Returns the newest cursor that the service accepts. Any failure except a refusal is thrown; the recovery is retried later. */
async function findNewestAccepted(
  cursors: readonly string[],
  context: FeedContext,
  signal: AbortSignal,
): Promise<Position | null> {
  for (const cursor of cursors) {
    context.observer.ticked(context.settings.stepMs);
    try {
      await listsAnything(context.service, probeOf({ cursor }, context), signal);
      return { cursor, since: null };
    } catch (error) {
      if (cursorRejection(error) === null) throw error;
      if (!(await isRejected(cursor, error, context, signal))) return { cursor, since: null };
    }
  }
  return null;
}

/** Reads a page within the memory budget, like every page, and releases it. */
async function readAt(
  at: Position,
  priority: Priority,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<{ readonly runs: readonly FeedRun[]; readonly next: string | null }> {
  const ticket = context.budget.enqueue(priority);
  try {
    const withoutMarkdown = { ...context.read, markdown: false };
    const { entries, next } = checkPage(await receivePageWithin(ticket, at, withoutMarkdown, context, signal));
    return { runs: entries.map(({ accepted }) => accepted.run), next };
  } finally {
    ticket.close();
  }
}

/**
 * Returns whether entries that are delivered again belong to the organization that is stored. If runs are stored for that time,
 * the entries should include one of them. They may include none if the filters have widened, or the stored runs were corrected
 * or removed from the feed. So the runs stored for that time are requested one by one, which no filter hides (interface 4.3).
 * Returns false if that is inconclusive too.
 * @throws AnotherOrganization if none of them exists
 */
async function isSameOrganization(
  listed: readonly FeedRun[],
  since: Date,
  storedUpTo: Date,
  feed: string,
  { store, loader }: FeedContext,
  signal: AbortSignal,
): Promise<boolean> {
  const again = listed.flatMap(({ scanId, deliveredAt }) =>
    deliveredAt !== null && deliveredAt <= storedUpTo ? [{ scanId, deliveredAt }] : [],
  );
  const last = again.at(-1);
  if (last === undefined || (await store.findStored(again.map(({ scanId }) => scanId))).length > 0) return true;
  const stored = await store.findDelivered(feed, since, last.deliveredAt, MAX_CHECKED_RUNS);
  if (stored.length === 0) return true;
  const answers = await Promise.all(
    stored.map(async (run) => {
      const verdict = await loader.loadOnce(run, signal);
      verdict.release(); // only its existence matters
      return verdict.kind === 'loaded' ? 'known' : verdict.reason;
    }),
  );
  if (answers.every((answer) => answer === 'not_found')) throw new AnotherOrganization();
  return answers.some((answer) => answer !== 'not_found' && answer !== 'not_loaded');
}
