import type { Failure } from '../../core/errors.js';
import { classifyError } from '../../core/errors.js';
import type { FeedContext } from '../context.js';
import { cursorRejection } from '../page/cursors.js';
import { listsAnything } from '../page/probe.js';
import type { LeaseGrant, Position } from '../ports/index.js';

/** A pass waits until the feed continues from another position, or holds as long as the feed does. */
class FeedCursorRejected extends Error implements Failure {
  override readonly name = 'FeedCursorRejected';
  readonly kind: string;
  readonly action = 'retry';
  constructor(cause: unknown) {
    super(
      "the service rejects the feed's own cursor, perhaps because the key belongs to another organization: passes store nothing until the feed continues",
      { cause },
    );
    this.kind = classifyError(cause).kind;
  }
}

/**
 * Checks that the service still accepts the feed's own cursor, before a page that was requested without a cursor is stored.
 * If the key belongs to another organization, so does such a page, and nothing in it shows that. If the cursor is rejected, the
 * feed determines the organization (promise 8), which is impossible once runs of another one are stored.
 * @throws FeedCursorRejected, or another failure of the request
 */
export async function assertSameOrganization(
  page: { readonly at: Position },
  lease: LeaseGrant,
  { service, store, read }: FeedContext,
  signal: AbortSignal,
): Promise<void> {
  if (page.at.cursor !== null) return; // the page's own cursor was accepted
  const { cursor } = await store.readPosition(lease.feed);
  if (cursor === null) return;
  await listsAnything(service, { filters: read.filters, start: { cursor } }, signal).catch((error) => {
    throw cursorRejection(error) === null ? error : new FeedCursorRejected(error);
  });
}
