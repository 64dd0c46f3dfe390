import type { Dispatcher } from 'undici';
import type { AnsweringCache } from '../../sync/ports/index.js';
import { header } from './body.js';

/** Age to assume if only a hit is stated, milliseconds: such a response proves nothing. */
const UNKNOWN_AGE_MS = 7 * 24 * 3_600_000;
/** Headers in which caches state a hit (RFC 9211, and the usual ones before it). */
const HIT_HEADERS = ['cache-status', 'x-cache', 'x-cache-status', 'x-proxy-cache', 'cf-cache-status'];
const HIT = /(^|[^a-z])(hit|stale|updating)([^a-z]|$)/i;

/**
 * Returns the cache that gave a response, by what the response states; null if it shows none. An `Age` of 0 shows none, since some
 * caches also send it with responses that they have just received.
 */
export function findAnsweringCache(response: Pick<Dispatcher.ResponseData, 'headers'>): AnsweringCache | null {
  const age = Number(/^\d{1,9}$/.exec(header(response, 'age') ?? '')?.[0] ?? 0);
  const hit = HIT_HEADERS.find((name) => HIT.test(header(response, name) ?? ''));
  if (age === 0 && hit === undefined) return null;
  // Rounding may have cut off a second.
  const ageMs = age === 0 ? UNKNOWN_AGE_MS : Math.min((age + 1) * 1000, UNKNOWN_AGE_MS);
  return { ageMs, evidence: age > 0 ? `Age: ${age}` : `${hit}: hit`, name: nameOf(response) };
}

/** Returns what names the cache in `Via` or `Server`, without characters that no such name has. */
function nameOf(response: Pick<Dispatcher.ResponseData, 'headers'>): string | null {
  const name = header(response, 'via') ?? header(response, 'server') ?? '';
  return name.replaceAll(/[^\w .:()/-]/g, '').slice(0, 60) || null;
}
