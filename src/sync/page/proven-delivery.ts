import type { CheckedPage } from './check-page.js';

/**
 * Returns the delivery time up to which every entry of the feed was read with this page or before it; null if the page
 * proves nothing. The interface leaves open whether a correction appears at its old place with a new delivery time
 * (4.2 rule 4), and everything after it may then be older. So only an entry of revision 1, which was never corrected, shows
 * how far the feed was read, and only on a page that is sorted by delivery time. Pure.
 * @param isPlausible whether a delivery time is not in the future by the service's clock
 */
export function provenDelivery(
  { entries }: Pick<CheckedPage, 'entries'>,
  isPlausible: (time: Date) => boolean,
): Date | null {
  let proven: Date | null = null;
  let latest = Number.NEGATIVE_INFINITY;
  for (const {
    accepted: { run },
  } of entries) {
    const { deliveredAt, revision } = run;
    if (deliveredAt === null) continue;
    if (deliveredAt.getTime() < latest) return null;
    latest = deliveredAt.getTime();
    if (revision === 1 && isPlausible(deliveredAt)) proven = deliveredAt;
  }
  return proven;
}
