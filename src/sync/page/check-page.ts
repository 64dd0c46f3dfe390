import { type CheckedEntry, checkEntries } from './check-entries.js';
import { LEADS_FURTHER } from './end-of-feed.js';
import type { CheckedPage, ReceivedPage } from './page.js';
import { type AnswerTimes, isPlausible, monotonicTimeOf, possibleDelivery } from './service-clock.js';

/**
 * Checks the entries of a page, and finds what it proves. The result keeps nothing else of the response in memory.
 * @param release releases the memory that is reserved for the page
 */
export function checkPage({ raw, times, ...polled }: ReceivedPage, release = () => {}): CheckedPage {
  const { entries, quarantine } = checkEntries(raw);
  return {
    ...polled,
    entries,
    quarantine,
    bytes: raw.body.length,
    provenUpTo: provenDelivery(entries, polled.items >= polled.limit, times),
    monotonicTimeOf: (deliveredAt) => monotonicTimeOf(deliveredAt, times),
    possibleDelivery: (deliveredAt) => possibleDelivery(deliveredAt, times.wallClock),
    ending: LEADS_FURTHER, // until requests show whether it may be the end
    release,
  };
}

/** Maximum part of a delivery time that rounding cuts off, milliseconds. */
const ROUNDING_MS = 1_000;

/**
 * Returns the delivery time up to which every entry of the feed was read with this page or before it; null if the page
 * proves nothing. The interface leaves open whether a correction appears at its old place with a new delivery time
 * (4.2 rule 4), and everything after it may then be older. So only an entry of revision 1, which was never corrected, shows
 * how far the feed was read, and only on a page that is sorted by delivery time. If all entries of a full page, perhaps
 * only one, were delivered within the time that it took to be answered, the response may have set these times, and more may follow. Pure.
 */
function provenDelivery(entries: readonly CheckedEntry[], isFull: boolean, times: AnswerTimes): Date | null {
  let proven: Date | null = null;
  const deliveries: number[] = [];
  for (const {
    accepted: { run },
  } of entries) {
    const { deliveredAt, revision } = run;
    if (deliveredAt === null) continue;
    if (deliveredAt.getTime() < (deliveries.at(-1) ?? Number.NEGATIVE_INFINITY)) return null;
    deliveries.push(deliveredAt.getTime());
    if (revision === 1 && isPlausible(deliveredAt, times)) proven = deliveredAt;
  }
  const [first = 0] = deliveries;
  const spanMs = (deliveries.at(-1) ?? first) - first;
  return isFull && spanMs <= times.receivedAt - times.polledAt + ROUNDING_MS ? null : proven;
}
