import type { Line } from './byte-budget.js';
import type { FeedContext } from './context.js';
import { isTooMuch, LARGEST_ENTRY_BYTES } from './page-limit.js';
import type { FeedRequest, FeedService } from './ports.js';

/** What is asked without wanting what comes: one entry tells. */
export type Probe = Pick<FeedRequest, 'filters' | 'start'>;

/** More of an answer is not waited for: so little is not counted towards the memory budget. */
const ENOUGH_BYTES = 1024 * 1024;

/** Whether the service lists anything there. Rejects where it refuses to say. */
export async function listsAnything(
  service: Pick<FeedService, 'readPage'>,
  probe: Probe,
  signal: AbortSignal,
): Promise<boolean> {
  const listed = await listEntries(service, probe, 1, signal);
  return listed === null || listed.items > 0;
}

/**
 * Returns how many entries the service lists there, and its cursor; null if the answer is longer than 1 MiB. Rejects where the
 * service refuses to say. It may be asked while pages are held, since it never waits for room.
 */
export async function listEntries(
  service: Pick<FeedService, 'readPage'>,
  probe: Probe,
  limit: number,
  signal: AbortSignal,
): Promise<{ readonly items: number; readonly next: string | null } | null> {
  const bounds = { maxBytes: ENOUGH_BYTES, arrived: () => {} };
  try {
    const { items, nextCursor } = await service.readPage({ ...probe, limit, markdown: false, ...bounds }, signal);
    return { items: items.length, next: nextCursor };
  } catch (error) {
    if (!isTooMuch(error)) throw error;
    return null;
  }
}

/** The date of the service's answer. The answer itself is read within the memory budget; nothing may be held before it. */
export async function readServiceDate(
  probe: Probe,
  line: Line,
  { service, budget }: Pick<FeedContext, 'service' | 'budget'>,
  signal: AbortSignal,
): Promise<Date | null> {
  const room = budget.open(line);
  try {
    for (let expected = 0; ; ) {
      const holding = await room.hold(expected, 'page', signal);
      const bounds = { maxBytes: LARGEST_ENTRY_BYTES, arrived: (bytes: number) => holding.arrived(bytes) };
      try {
        const request = { ...probe, limit: 1, markdown: false, ...bounds };
        return (await service.readPage(request, holding.signal)).serviceDate;
      } catch (error) {
        signal.throwIfAborted();
        if (holding.needs === null) throw error;
        expected = holding.needs;
      } finally {
        holding.release();
      }
    }
  } finally {
    room.close();
  }
}
