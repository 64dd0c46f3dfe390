import { checkEntries } from './check-entries.js';
import { LEADS_FURTHER } from './ending.js';
import type { CheckedPage, ReceivedPage } from './page.js';
import { provenDelivery } from './proven-delivery.js';
import { isPlausible, monotonicTimeOf, possibleDelivery } from './service-clock.js';

/**
 * Checks the entries of a page, and finds what it proves. The result keeps nothing else of the response in memory.
 * @param release releases the memory that is reserved for the page
 */
export function checkPage({ raw, times, ...polled }: ReceivedPage, release = () => {}): CheckedPage {
  const { entries, quarantine } = checkEntries(raw);
  const answer = {
    isPlausible: (time: Date) => isPlausible(time, times),
    isFull: polled.items >= polled.limit,
    answerMs: times.receivedAt - times.polledAt,
  };
  return {
    ...polled,
    entries,
    quarantine,
    bytes: raw.body.length,
    provenUpTo: provenDelivery(entries, answer),
    monotonicTimeOf: (deliveredAt) => monotonicTimeOf(deliveredAt, times),
    possibleDelivery: (deliveredAt) => possibleDelivery(deliveredAt, times.wallClock),
    ending: LEADS_FURTHER, // until requests show whether it may be the end
    release,
  };
}
