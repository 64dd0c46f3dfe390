import { checkEntries } from './check-entries.js';
import type { CheckedPage, ReceivedPage } from './page.js';
import { provenDelivery } from './proven-delivery.js';
import { isPlausible, monotonicTimeOf, possibleDelivery } from './service-clock.js';

/** Checks the entries of a page, and finds what it proves. The result keeps nothing else of the response in memory. */
export function checkPage({ raw, times, ...polled }: ReceivedPage): CheckedPage {
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
    polledAt: times.polledAt,
    provenUpTo: provenDelivery(entries, answer),
    monotonicTimeOf: (deliveredAt) => monotonicTimeOf(deliveredAt, times),
    possibleDelivery: (deliveredAt) => possibleDelivery(deliveredAt, times.wallClock),
  };
}
