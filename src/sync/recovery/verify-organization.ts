import type { FeedContext } from '../context.js';
import { cursorRejection } from '../page/cursors.js';
import { listsAnything } from '../page/probe.js';
import type { LeaseGrant, Position } from '../ports/index.js';
import { CursorRejected } from './rejected-cursor.js';

/** A pass waits until the feed continues from another position, or holds as long as the feed does. */
const FEED_REJECTED =
  "the service rejects the feed's own cursor, perhaps because the key belongs to another organization: passes store nothing until the feed continues";

/**
 * Checks that the service still accepts the feed's own cursor, before a page that was requested without a cursor is stored.
 * If the key belongs to another organization, so does such a page, and nothing in it shows that. If the cursor is rejected, the
 * feed determines the organization (promise 8), which is impossible once runs of another one are stored.
 * @throws CursorRejected, or another failure of the request
 */
export async function assertSameOrganization(
  page: { readonly at: Position },
  lease: LeaseGrant,
  { service, store, settings }: FeedContext,
  signal: AbortSignal,
): Promise<void> {
  if (page.at.cursor !== null) return; // the page's own cursor was accepted
  const { cursor } = await store.readPosition(lease.feed);
  if (cursor === null) return;
  await listsAnything(service, { filters: settings.identity.filters, start: { cursor } }, signal).catch((error) => {
    throw cursorRejection(error) === null ? error : new CursorRejected(FEED_REJECTED, error);
  });
}
