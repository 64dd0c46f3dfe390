import { classifyError } from '../../core/errors.js';
import { isStorable } from './storable-text.js';

/**
 * Maximum length of a cursor as it is sent, percent-encoded, characters. HTTP servers and proxies accept request lines of some
 * 8,000 (RFC 9112 section 3; nginx, Apache and most others by default), and the rest of that request needs its part. A
 * longer cursor would be refused when it is sent, and is never stored.
 */
const MAX_CURSOR_LENGTH = 7_500;

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

/** Maximum number of cursors to remember: each of a thousand feeds has them in memory while they catch up. */
const MAX_REMEMBERED = 200;

export type RecentCursors = ReturnType<typeof createRecentCursors>;

/** Detects cursors that go in circles, which would be polled without a pause. */
export function createRecentCursors() {
  const remembered = new Set<string>();
  // In a longer circle one cursor is kept for 1, 2, 4, … further ones, so that it returns at last (Brent's algorithm).
  let kept = '';
  let keptFor = 1;
  let sinceKept = 0;
  const keep = (cursor: string) => {
    sinceKept += 1;
    if (sinceKept < keptFor) return;
    kept = cursor;
    keptFor *= 2;
    sinceKept = 0;
  };
  return {
    /** Remembers a cursor. Returns whether it was remembered before. */
    remember: (cursor: string | null): boolean => {
      if (cursor === null) return false;
      if (remembered.has(cursor) || cursor === kept) return true;
      keep(cursor);
      remembered.add(cursor);
      const [oldest] = remembered;
      if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
      return false;
    },
  };
}
