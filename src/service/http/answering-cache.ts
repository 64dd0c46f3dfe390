import type { Dispatcher } from 'undici';
import type { AnsweringCache } from '../../sync/ports/index.js';
import { header } from './body.js';

/** Age to assume if only a hit is stated, milliseconds. No feed was last read so long ago, so such a response proves nothing. */
const UNKNOWN_AGE_MS = 10 * 365 * 24 * 3_600_000;
/** Headers in which caches state a hit (RFC 9211, and the usual ones before it). */
const HIT_HEADERS = ['cache-status', 'x-cache', 'x-cache-status', 'x-proxy-cache', 'cf-cache-status'];
const HIT = /(^|[^a-z])(?<!refresh_)(hit|stale|updating)([^a-z]|$)/i;
/** An old response for which the cache asked the service, which answered (RFC 9211). */
const RENEWED = /fwd=stale(?=[^,]*;\s*fwd-status=(2\d\d|304))/gi;

/** What a response states about caches. */
export interface ResponseAge {
  /** Maximum age of the response, milliseconds. */
  readonly ageMs: number;
  /** The cache that gave it; null if it shows none. */
  readonly cache: AnsweringCache | null;
}

/**
 * Returns the age of a response and the cache that gave it. An `Age` of 0 shows no cache, since some also send it with responses that
 * they have just received; but the response may be that of an earlier request.
 */
export function readResponseAge(response: Dispatcher.ResponseData): ResponseAge {
  // A header may be repeated, by one cache after another.
  const stated = (name: string) => [response.headers[name] ?? ''].flat().join();
  const ages = stated('age')
    .split(',')
    .filter((seconds) => /^\s*\d{1,10}\s*$/.test(seconds));
  const age = Math.max(0, ...ages.map(Number));
  const hit = HIT_HEADERS.find((name) => HIT.test(stated(name).replaceAll(RENEWED, '')));
  // Rounding may have cut off a second.
  const statedMs = ages.length === 0 ? 0 : Math.min((age + 1) * 1000, UNKNOWN_AGE_MS);
  if (age === 0 && hit === undefined) return { ageMs: statedMs, cache: null };
  const evidence = age > 0 ? `Age: ${age}` : `${hit}: hit`;
  return { ageMs: age > 0 ? statedMs : UNKNOWN_AGE_MS, cache: { evidence, name: nameOf(response) } };
}

/** Returns what names the cache in `Via` or `Server`, without characters that no such name has. */
function nameOf(response: Dispatcher.ResponseData): string | null {
  const name = header(response, 'via') ?? header(response, 'server') ?? '';
  return name.replaceAll(/[^\w .:()/-]/g, '').slice(0, 60) || null;
}
