import { isRealTime } from '../../core/real-times.js';

/** A date-time of the interface (ISO 8601), which PostgreSQL and this process read in the same way. */
export interface Timestamp {
  /** The text to store: as given, or in a more common notation. */
  readonly text: string;
  /** The instant, in whole milliseconds. */
  readonly at: Date;
  /** Whether it had no zone and was read as UTC (promise 5). */
  readonly zoneAdded: boolean;
}

const ISO_8601 =
  /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,20})?)?(?:[Zz]|[+-](?:0\d|1[0-4])(?::?[0-5]\d)?)?$/;
const ZONE = /(?:[Zz]|[+-]\d\d(?::?\d\d)?)$/;

const FIRST_MS = midnight(1, 1, 1);
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Parses strict ISO 8601 date-times of real days, in the years 1 to 9999 in UTC. Null for any other text: PostgreSQL would
 * accept `now`, `infinity` and `24:00`; JavaScript would accept 30 February, and reads fewer notations. A time without a zone
 * is UTC; a leap second is the second after it, as in PostgreSQL.
 */
export function readTimestamp(given: string): Timestamp | null {
  if (!ISO_8601.test(given)) return null;
  const year = digits(given, 0, 4);
  const month = digits(given, 5, 7);
  const day = digits(given, 8, 10);
  const hour = digits(given, 11, 13);
  const minute = digits(given, 14, 16);
  const second = given[16] === ':' ? digits(given, 17, 19) : 0;
  const real = month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month) && hour <= 23 && minute <= 59;
  if (!real || second > 60) return null;
  const zone = given.endsWith('Z') ? 'Z' : (ZONE.exec(given.slice(16))?.[0] ?? '');
  const fraction = given.slice(20, given.length - zone.length);
  if (second === 60 && /[1-9]/.test(fraction)) return null; // PostgreSQL refuses most of these
  const ms =
    midnight(year, month, day) +
    ((hour * 60 + minute - offsetMinutes(zone)) * 60 + second) * 1000 +
    millisecondsOf(fraction);
  if (ms < FIRST_MS || ms > LAST_MS) return null;
  const at = new Date(ms);
  return { text: notation(given, zone, second, at), at, zoneAdded: zone === '' };
}

/** Parses a time of a run. Null also for a time that means none: it is treated as missing, whatever depends on it (promise 5). */
export function readRunTime(given: string): Timestamp | null {
  const time = readTimestamp(given);
  return time !== null && isRealTime(time.at) ? time : null;
}

/** Returns the given text if JavaScript and PostgreSQL both read it, else a notation that they do. */
function notation(given: string, zone: string, second: number, at: Date): string {
  if (second === 60) return at.toISOString();
  if (zone === 'Z' && given[10] === 'T' && given[19] !== ',') return given;
  const local = given
    .slice(0, given.length - zone.length)
    .replace(',', '.')
    .toUpperCase();
  if (zone === '' || zone.length === 1) return `${local}Z`;
  return zone.length === 3 ? `${local}${zone}:00` : `${local}${zone}`;
}

/** Returns a fraction in whole milliseconds. PostgreSQL rounds to microseconds, ties to even, which may reach the next second. */
function millisecondsOf(fraction: string): number {
  if (fraction.length <= 3) return digits(fraction.padEnd(3, '0'), 0, 3);
  const micros = Number(`0.${fraction}`) * 1e6;
  const floor = Math.floor(micros);
  const tie = micros - floor === 0.5;
  return Math.floor((tie ? floor + (floor % 2) : Math.round(micros)) / 1000);
}

/** Returns the offset of `Z`, `+02`, `+0200`, `+02:00` or no zone, minutes east of Greenwich. */
function offsetMinutes(zone: string): number {
  if (zone.length < 3) return 0;
  const minutes = digits(zone, 1, 3) * 60 + (zone.length > 3 ? digits(zone, zone.length - 2, zone.length) : 0);
  return zone[0] === '-' ? -minutes : minutes;
}

/** Returns the start of a day, milliseconds since 1970. `Date.UTC` would read the years up to 99 as 1900 to 1999. */
function midnight(year: number, month: number, day: number): number {
  return year > 99 ? Date.UTC(year, month - 1, day) : new Date(0).setUTCFullYear(year, month - 1, day);
}

function daysIn(year: number, month: number): number {
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0;
}

/** Parses the digits from `start` (inclusive) to `end` (exclusive). */
function digits(text: string, start: number, end: number): number {
  let number = 0;
  for (let at = start; at < end; at += 1) number = number * 10 + text.charCodeAt(at) - 48;
  return number;
}
