const ONE_HOUR_MS = 3_600_000;

/** A date as HTTP writes it (RFC 9110 5.6.7, all three forms are UTC); null where it is none. */
export function parseHttpDate(value: string | undefined): Date | null {
  if (value === undefined || !/^[A-Z][a-z]+,? /.test(value)) return null;
  // The oldest form carries no zone, which Date.parse would take for local time.
  const date = new Date(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(date.getTime()) ? null : date;
}

/**
 * The pause that `Retry-After` asks for (RFC 9110 10.2.3: seconds, or a date), at most one hour.
 * A date is measured against the answer's own `Date` where there is one, so that the clocks need not agree.
 * @param nowMs the client's wall clock, milliseconds since 1970
 */
export function parseRetryAfter(value: string | undefined, date: Date | null, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1000, ONE_HOUR_MS);
  const until = parseHttpDate(value);
  if (until === null) return undefined;
  return Math.min(Math.max(until.getTime() - (date?.getTime() ?? nowMs), 0), ONE_HOUR_MS);
}
