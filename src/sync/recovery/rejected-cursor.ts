import type { Failure } from '../../core/errors.js';
import { classifyError } from '../../core/errors.js';
import { isStorable } from '../page/storable-text.js';

/**
 * Maximum length of a cursor as it is sent, percent-encoded, characters. HTTP servers and proxies accept request lines of some
 * 8,000 (RFC 9112 section 3; nginx, Apache and most others by default), and the rest of that request needs its part. A
 * longer cursor would be refused when it is sent, and is never stored.
 */
export const MAX_CURSOR_LENGTH = 7_500;

/** Whether a cursor can be stored and sent again. */
export function isUsableCursor(cursor: string): boolean {
  if (cursor === '' || cursor.length > MAX_CURSOR_LENGTH || !isStorable(cursor)) return false;
  return encodeURIComponent(cursor).length <= MAX_CURSOR_LENGTH;
}

/** Answers that may mean something else: document type unknown, gone, too long, not processable, header too large. */
const AMBIGUOUS: ReadonlySet<string> = new Set(['http_404', 'http_410', 'http_414', 'http_422', 'http_431']);
/** Codes of a connection that the service ended without an answer. */
const RESETS: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/**
 * Whether an error may mean that the service rejects the cursor that was sent (promise 8), and how soon that is believed: the
 * interface names 400 for it; everything else has to persist, and may also mean the settings or an outage. Pure.
 */
export function mayRejectCursor(error: unknown): 'at once' | 'if it persists' | null {
  const { kind } = classifyError(error);
  if (kind === 'http_400') return 'at once';
  const isReset = kind === 'connection' && RESETS.has((error as { readonly code?: unknown }).code);
  return isReset || AMBIGUOUS.has(kind) ? 'if it persists' : null;
}

/** Number of such errors in a row after which an error counts as persistent. */
const PERSISTENT = 3;

/** Counts the errors in a row that may mean that one and the same cursor is rejected. */
export interface CursorRefusals {
  /** Counts the error. Returns whether it is time to find out if the cursor is rejected. */
  isPersistent(cursor: string | null, error: unknown): boolean;
  /** The service answered. */
  accepted(): void;
}

export function createCursorRefusals(): CursorRefusals {
  let refused: string | null = null;
  let errors = 0;
  return {
    isPersistent: (cursor, error) => {
      const may = cursor === null ? null : mayRejectCursor(error);
      errors = may === null ? 0 : cursor === refused ? errors + 1 : 1;
      refused = cursor;
      return may === 'at once' || errors >= PERSISTENT;
    },
    accepted: () => {
      errors = 0;
    },
  };
}

/**
 * The service rejected a cursor, and the feed or the pass continues from an earlier position. A failure like others, so that
 * a service that rejects every cursor is not requested without pause.
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
