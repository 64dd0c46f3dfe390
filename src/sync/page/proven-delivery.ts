import type { CheckedEntry } from './check-entries.js';

/** Maximum part of a delivery time that rounding cuts off, milliseconds. */
const ROUNDING_MS = 1_000;

/** How a page was answered. */
export interface PageAnswer {
  /** Returns whether a delivery time is not in the future by the service's clock. */
  readonly isPlausible: (time: Date) => boolean;
  /** Whether it has as many entries as were requested. */
  readonly isFull: boolean;
  /** Time between the request and its answer, milliseconds. */
  readonly answerMs: number;
}

/**
 * Returns the delivery time up to which every entry of the feed was read with this page or before it; null if the page
 * proves nothing. The interface leaves open whether a correction appears at its old place with a new delivery time
 * (4.2 rule 4), and everything after it may then be older. So only an entry of revision 1, which was never corrected, shows
 * how far the feed was read, and only on a page that is sorted by delivery time. If all entries of a full page, perhaps
 * only one, were delivered within the time that it took to be answered, the answer may have set these times, and more may follow. Pure.
 */
export function provenDelivery(
  entries: readonly CheckedEntry[],
  { isPlausible, isFull, answerMs }: PageAnswer,
): Date | null {
  let proven: Date | null = null;
  const times: number[] = [];
  for (const {
    accepted: { run },
  } of entries) {
    const { deliveredAt, revision } = run;
    if (deliveredAt === null) continue;
    if (deliveredAt.getTime() < (times.at(-1) ?? Number.NEGATIVE_INFINITY)) return null;
    times.push(deliveredAt.getTime());
    if (revision === 1 && isPlausible(deliveredAt)) proven = deliveredAt;
  }
  const [first = 0] = times;
  const spanMs = (times.at(-1) ?? first) - first;
  return isFull && spanMs <= answerMs + ROUNDING_MS ? null : proven;
}
