import type { FeedContext } from '../context.js';
import type { Priority } from '../memory/memory-budget.js';
import type { FeedRequest, PageService } from '../ports/index.js';
import { isOversized, LARGEST_ENTRY_BYTES } from './page-limit.js';

/** A request for one entry, to see whether the service lists anything. */
export type Probe = Pick<FeedRequest, 'filters' | 'start'>;

/** Maximum size of the response to a probe, bytes. It is too small to count towards the memory budget. */
const MAX_PROBE_BYTES = 1024 * 1024;

/** Returns whether the service lists anything there. Rejects if it refuses the request. */
export async function listsAnything(service: PageService, probe: Probe, signal: AbortSignal): Promise<boolean> {
  const listed = await listEntries(service, probe, 1, signal);
  return listed === null || listed.items > 0;
}

/**
 * Returns the number of entries that the service lists there, its cursor, and whether a cache answered; null if the response exceeds 1 MiB. Rejects if the
 * service refuses the request. It can be called while pages are held, since it never waits for memory.
 */
export async function listEntries(
  service: PageService,
  probe: Probe,
  limit: number,
  signal: AbortSignal,
): Promise<{ readonly items: number; readonly next: string | null; readonly isCached: boolean } | null> {
  const request = { ...probe, limit, markdown: false, maxBytes: MAX_PROBE_BYTES };
  try {
    const { items, nextCursor, cache } = await service.readPage(request, signal);
    return { items: items.length, next: nextCursor, isCached: Boolean(cache) };
  } catch (error) {
    if (!isOversized(error)) throw error;
    return null;
  }
}

/** Returns the date of the service's response, which is read within the memory budget. The caller must not hold memory. */
export async function readServiceDate(
  probe: Probe,
  priority: Priority,
  { service, budget }: FeedContext,
  signal: AbortSignal,
): Promise<Date | null> {
  const ticket = budget.enqueue(priority);
  try {
    const { resize } = await ticket.reserve(0, signal);
    const bounds = { maxBytes: LARGEST_ENTRY_BYTES, reserve: resize };
    return (await service.readPage({ ...probe, limit: 1, markdown: false, ...bounds }, signal)).serviceDate;
  } finally {
    ticket.close();
  }
}
