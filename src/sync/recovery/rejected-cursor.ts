import type { Failure } from '../../core/errors.js';
import { classifyError } from '../../core/errors.js';
import { isStorable } from '../page/storable-text.js';

/**
 * Maximum length of a cursor as it is sent, percent-encoded, characters. HTTP servers and proxies accept request lines of some
 * 8,000 (RFC 9112 section 3; nginx, Apache and most others by default), and the rest of that request needs its part. A
 * longer cursor would be refused when it is sent, and is never stored.
 */
export const MAX_CURSOR_LENGTH = 7_500;

/** Returns whether a cursor can be stored and sent again. */
export function isUsableCursor(cursor: string): boolean {
  if (cursor === '' || cursor.length > MAX_CURSOR_LENGTH || !isStorable(cursor)) return false;
  return encodeURIComponent(cursor).length <= MAX_CURSOR_LENGTH;
}

/** Kinds of refusals that may have other causes: document type unknown, gone, too long, not processable, header too large. */
const AMBIGUOUS_KINDS: ReadonlySet<string> = new Set(['http_404', 'http_410', 'http_414', 'http_422', 'http_431']);
/** Codes of errors for connections that the service closed without a response. */
const RESET_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/**
 * Returns whether an error means that the service rejects the cursor that was sent (promise 8): `certain` for 400, which the
 * interface defines for it; `possible` if it does so only when it persists, since its cause may be the settings or an outage. Pure.
 */
export function cursorRejection(error: unknown): 'certain' | 'possible' | null {
  const { kind } = classifyError(error);
  if (kind === 'http_400') return 'certain';
  const isReset = kind === 'connection' && RESET_CODES.has((error as { readonly code?: unknown }).code);
  return isReset || AMBIGUOUS_KINDS.has(kind) ? 'possible' : null;
}

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
