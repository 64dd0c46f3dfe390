import { InvalidArgumentError } from 'commander';
import { duration as durationKind } from '../settings/kinds.js';
import { readTimestamp } from '../sync/check-entry.js';

const window = durationKind('1m', '3650d');
const interval = durationKind('1s', '1d');
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Milliseconds of an option such as `24h`. */
export function durationOption(text: string): number {
  const { success, data } = window.schema.safeParse(text);
  if (!success) throw new InvalidArgumentError(`Expected ${window.allowed}.`);
  return data;
}

/** Milliseconds of an option such as `5s`. */
export function intervalOption(text: string): number {
  const { success, data } = interval.schema.safeParse(text);
  if (!success) throw new InvalidArgumentError(`Expected ${interval.allowed}.`);
  return data;
}

/**
 * Reads an option that is a time: ISO 8601 with a zone, a day (its beginning in UTC), or a duration before now.
 * @param now milliseconds since 1970
 */
export function timeOption(now: () => number): (text: string) => Date {
  return (text) => {
    const ago = window.schema.safeParse(text);
    if (ago.success) return new Date(now() - ago.data);
    const time = readTimestamp(DAY.test(text) ? `${text}T00:00:00Z` : text);
    if (time === null || time.zoneAdded) {
      throw new InvalidArgumentError(
        'Expected a time with a zone such as 2026-01-31T08:00:00Z, a day such as 2026-01-31 (in UTC), or a time before now such as 24h.',
      );
    }
    return new Date(time.text);
  };
}
