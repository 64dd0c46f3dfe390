import type { LeaderContext } from '../context.js';
import { readServiceDate } from '../page/probe.js';
import type { Pass, Position } from '../ports/index.js';
import { fallbackTime, findPositionWithin, isSameOrganization, readRunsFrom } from '../recovery/recover-cursor.js';

/**
 * Finds where a pass continues if the service rejects its cursor: like the feed itself a day before what it has read, or at its
 * beginning if that time may skip unread entries. If the service refuses that too, the settings are wrong.
 * @param refusal the error of the rejected cursor, thrown if it remains unclear whether the key belongs to another organization
 * @throws AnotherOrganization
 */
export async function findRestartPosition(
  { since, deliveredUpTo }: Pass,
  refusal: unknown,
  feed: string,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<Position> {
  if (deliveredUpTo === null) return { cursor: null, since };
  const { read, clock } = context;
  const probe = { filters: read.filters, start: { since: deliveredUpTo } };
  const serviceDate = await readServiceDate(probe, 'background', context, signal);
  const before = fallbackTime(deliveredUpTo, serviceDate ?? new Date(clock.now()));
  const from = since !== null && since > before ? since : before;
  const again = await readRunsFrom(from, 'background', context, signal);
  if (!(await isSameOrganization(again, from, deliveredUpTo, feed, context, signal))) {
    throw refusal;
  }
  return (await findPositionWithin(from, deliveredUpTo, 'background', context, signal)) ?? { cursor: null, since };
}
