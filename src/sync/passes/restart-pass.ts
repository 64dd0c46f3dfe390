import type { Pass, Position } from '../ports/index.js';
import { readServiceDate } from '../recovery/probe.js';
import { isSameOrganization, listedFrom, overlapBefore, positionWithin } from '../recovery/recover-cursor.js';
import type { PassContext } from './pass-context.js';

/**
 * Finds where a pass continues if the service rejects its cursor: a day before what it has read, as the feed itself, or at
 * its beginning if that time may lead past entries that were not read. If that is refused too, the settings are wrong, and
 * the refusal is thrown.
 * @throws AnotherOrganization
 */
export async function positionWithoutCursor(
  { kind, since, deliveredUpTo }: Pass,
  refusal: unknown,
  context: PassContext,
  signal: AbortSignal,
): Promise<Position> {
  if (deliveredUpTo === null) return { cursor: null, since };
  const { read, clock } = context;
  const probe = { filters: read.filters, start: { since: deliveredUpTo } };
  const serviceDate = await readServiceDate(probe, kind, context, signal);
  const before = overlapBefore(deliveredUpTo, serviceDate ?? new Date(clock.now()));
  const from = since !== null && since > before ? since : before;
  const again = await listedFrom(from, kind, context, signal);
  if (!(await isSameOrganization(again, from, deliveredUpTo, context, signal))) {
    throw refusal;
  }
  return (await positionWithin(from, deliveredUpTo, kind, context, signal)) ?? { cursor: null, since };
}
