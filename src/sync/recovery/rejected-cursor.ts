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
 * The service rejected a cursor, and the feed or the pass continues from an earlier position. It is a failure, so that there is
 * a pause even if the service rejects every cursor.
 */
export class CursorReplaced extends Error implements Failure {
  override readonly name = 'CursorReplaced';
  readonly kind: string;
  readonly action = 'retry';
  /**
   * @param refusal the error of the rejected request
   * @param retryAfterMs the pause, milliseconds
   */
  constructor(
    whose: 'the feed' | 'a pass',
    refusal: unknown,
    readonly retryAfterMs: number,
  ) {
    super(`the service rejected the cursor of ${whose}, which falls back to an earlier position`, { cause: refusal });
    this.kind = classifyError(refusal).kind;
  }
}
