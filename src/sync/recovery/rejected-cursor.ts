import type { Failure } from '../../core/errors.js';
import { classifyError } from '../../core/errors.js';
import { cursorRejection } from '../page/cursors.js';

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
