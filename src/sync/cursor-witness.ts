import { troubleOf } from '../outcome/trouble.js';
import type { FeedContext } from './context.js';
import type { LeaseGrant, Position, Trouble } from './ports.js';
import { listsAnything } from './probe.js';
import { mayRejectCursor } from './rejected-cursor.js';

/** A pass waits until the feed has continued from another position, or holds as long as the feed does. */
class FeedCursorRejected extends Error implements Trouble {
  override readonly name = 'FeedCursorRejected';
  readonly kind: string;
  readonly remedy = 'retry';
  constructor(cause: unknown) {
    super(
      "the service rejects the feed's own cursor, perhaps because the key belongs to another organization: passes store nothing until the feed continues",
      { cause },
    );
    this.kind = troubleOf(cause).kind;
  }
}

/**
 * A page that was asked for without a cursor may be another organization's, if the key is: nothing in it would tell. So
 * before it is stored the feed's own cursor has to be accepted. If it is not, the feed finds out whether that is so
 * (promise 8), which it could not once runs of the other are stored.
 * @throws FeedCursorRejected, or what else fails
 */
export async function requireFeedCursor(
  page: { readonly at: Position },
  lease: LeaseGrant,
  { service, store, read }: Pick<FeedContext, 'service' | 'store' | 'read'>,
  signal: AbortSignal,
): Promise<void> {
  if (page.at.cursor !== null) return; // it was accepted itself
  const { cursor } = await store.readPosition(lease.feed);
  if (cursor === null) return;
  await listsAnything(service, { filters: read.filters, start: { cursor } }, signal).catch((error) => {
    throw mayRejectCursor(error) === null ? error : new FeedCursorRejected(error);
  });
}
