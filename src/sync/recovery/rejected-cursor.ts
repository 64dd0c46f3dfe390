import { classifyError, type Failure } from '../../core/errors.js';
import type { LeaderContext } from '../context.js';
import { cursorRejection } from '../page/cursors.js';
import { listsAnything } from '../page/probe.js';

/** Number of such errors in a row after which an error counts as persistent. */
const PERSISTENT_ERRORS = 3;

/** Counts consecutive errors that may mean that the same cursor is rejected. */
export function createCursorRefusals() {
  let refused: string | null = null;
  let errors = 0;
  return {
    /** Counts the error. Returns whether to check if the cursor is rejected. */
    isPersistent: (cursor: string, error: unknown): boolean => {
      const rejection = cursorRejection(error);
      errors = rejection === null ? 0 : cursor === refused ? errors + 1 : 1;
      refused = cursor;
      return rejection === 'certain' || errors >= PERSISTENT_ERRORS;
    },
    /** Called when the service accepted the request. */
    accepted: (): void => {
      errors = 0;
    },
  };
}

/**
 * The service rejects a cursor. If the feed or the pass continues from an earlier position, this is a failure all the same, so that
 * there is a pause even if the service rejects every cursor.
 */
export class CursorRejected extends Error implements Failure {
  override readonly name = 'CursorRejected';
  readonly kind: string;
  readonly action = 'retry';
  /**
   * @param refusal the error of the rejected request
   * @param retryAfterMs minimum pause, milliseconds
   */
  constructor(
    message: string,
    refusal: unknown,
    readonly retryAfterMs?: number,
  ) {
    super(message, { cause: refusal });
    this.kind = classifyError(refusal).kind;
  }
}

const FEED_REJECTED =
  "the service rejects the feed's own cursor, perhaps because the key belongs to another organization: passes store nothing until the feed continues";

/**
 * Checks that the service accepts the feed's cursor, before a page of a pass that was requested without a cursor is stored. If the key
 * belongs to another organization, so does such a page, and nothing in it shows that. The feed finds out the organization once its
 * cursor is rejected (promise 8), which is impossible if runs of another one are stored by then.
 * @throws CursorRejected until the feed continues from another position
 */
export async function assertFeedAccepted(feed: string, context: LeaderContext, signal: AbortSignal): Promise<void> {
  const { service, store, read } = context;
  const { cursor } = await store.readPosition(feed);
  if (cursor === null) return;
  await listsAnything(service, { filters: read.filters, start: { cursor } }, signal).catch((error) => {
    throw cursorRejection(error) === null ? error : new CursorRejected(FEED_REJECTED, error);
  });
}
