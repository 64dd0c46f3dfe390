import { InvalidArgumentError } from 'commander';
import type { Clock } from '../../core/clock.js';
import { duration, integer, type Kind } from '../../settings/kinds.js';
import { readTimestamp } from '../../sync/page/timestamps.js';
import { CommandFailure, EXIT } from './exit.js';

const window = duration('1m', '3650d');
const DAY = /^\d{4}-\d{2}-\d{2}$/;

export function numberOption(min: number, max = 999_999_999_999_999): (text: string) => number {
  return optionOf(integer(min, max));
}

export function idOption(text: string): string {
  if (!/^\d{1,18}$/.test(text)) throw new InvalidArgumentError('An id is a whole number, as listed.');
  return String(BigInt(text));
}

/** Reads an option such as `5s`, in milliseconds. */
export const intervalOption = optionOf(duration('1s', '1d'));
/** The same for `30d`. */
export const periodOption = optionOf(window);

/** Reads an option as settings of this kind are read. */
export function optionOf<T>(kind: Kind<T>): (text: string) => T {
  return (text) => {
    const { success, data } = kind.safeParse(text);
    if (!success) throw new InvalidArgumentError(`Expected ${kind.description}.`);
    return data;
  };
}

/**
 * Reads an option that is a time: ISO 8601 with a zone, a day (its beginning in UTC), or a duration before now.
 * @param now milliseconds since 1970
 */
export function timeOption(now: () => number): (text: string) => Date {
  return (text) => {
    const ago = window.safeParse(text);
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

/**
 * @param since null for the beginning
 * @param until null for now
 * @throws CommandFailure if nothing can have been delivered in the range
 */
export function requireRange(since: Date | null, until: Date | null, { now }: Clock): void {
  if (since === null) return;
  if (until !== null && until <= since) throw new CommandFailure('--until is not after --since', EXIT.usage);
  if (since.getTime() > now()) throw new CommandFailure('--since is in the future', EXIT.usage);
}
