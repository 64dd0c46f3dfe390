import { isRealTime } from '../../core/real-times.js';

const ONE_HOUR_MS = 3_600_000;

/** Parses the header `Date`. Null if it is invalid, or that of a clock that was never set: passes would end there. */
export function parseDateHeader(value: string | undefined): Date | null {
  const date = parseHttpDate(value);
  return date !== null && isRealTime(date) ? date : null;
}

/** Parses an HTTP date (RFC 9110 5.6.7; all three forms are UTC). Null if it is invalid. */
function parseHttpDate(value: string | undefined): Date | null {
  if (value === undefined || !/^[A-Z][a-z]+,? /.test(value)) return null;
  // The oldest form has no zone, and Date.parse would read it as local time.
  const date = new Date(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(date.getTime()) ? null : date;
}

/**
 * Returns the pause that `Retry-After` requests (RFC 9110 10.2.3: seconds, or a date), milliseconds, at most one hour.
 * A date is compared with the response's own `Date` if it has one, so that the clocks need not agree.
 * @param nowMs the client's wall clock, milliseconds since 1970
 */
export function parseRetryAfter(value: string | undefined, date: Date | null, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, ONE_HOUR_MS);
  const until = parseHttpDate(value);
  if (until === null) return undefined;
  return Math.min(Math.max(until.getTime() - (date?.getTime() ?? nowMs), 0), ONE_HOUR_MS);
}
