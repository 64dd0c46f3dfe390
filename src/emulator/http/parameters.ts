/** The query parameters of the feed (interface 4.2), checked as the service checks them. */

import { parseFilters } from '../model/filters.js';
import { Refusal } from '../model/refusal.js';

export type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface FeedParameters {
  readonly cursor: string | null;
  /** Milliseconds since 1970. */
  readonly since: number | null;
  readonly filters: ReturnType<typeof parseFilters>;
  readonly limit: number;
  readonly markdown: boolean;
}

/** Returns the only value of a parameter, or null if it is missing. */
export function single(query: Query, name: string): string | null {
  const value = query[name];
  if (value === undefined) return null;
  if (typeof value !== 'string') throw new Refusal(400, `Der Parameter „${name}“ darf nur einmal angegeben werden.`);
  return value;
}

export function isTrueLike(value: string | null): boolean {
  return value === 'true' || value === '1' || value === 'yes';
}

export function parseFeedParameters(query: Query): FeedParameters {
  const cursor = single(query, 'cursor');
  const since = single(query, 'since');
  if (cursor !== null && since !== null) {
    throw new Refusal(400, 'Die Parameter „cursor“ und „since“ schließen sich gegenseitig aus.');
  }
  return {
    cursor,
    since: since === null ? null : parseSince(since),
    filters: parseFilters((name) => single(query, name)),
    limit: parseLimit(single(query, 'limit')),
    markdown: isTrueLike(single(query, 'markdown')),
  };
}

function parseLimit(value: string | null): number {
  if (value === null) return 50;
  const limit = /^\d{1,9}$/.test(value) ? Number(value) : 0;
  if (limit < 1 || limit > 200) throw new Refusal(400, '„limit“ muss eine ganze Zahl zwischen 1 und 200 sein.');
  return limit;
}

const isoTime = /^(\d{4}-\d\d-\d\d)(?:T([01]\d|2[0-3])(:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)(Z|[+-]\d\d(?::?\d\d)?)?)?$/i;
const latest = 8.64e15;

/** ISO 8601 (without a zone: UTC) or milliseconds since 1970. */
function parseSince(value: string): number {
  const ms = /^\d{1,16}$/.test(value) ? Number(value) : parseIsoTime(value);
  if (Number.isNaN(ms) || ms > latest) {
    throw new Refusal(
      400,
      'Ungültiger Wert für „since“: erwartet wird ein Zeitpunkt nach ISO 8601 oder Millisekunden seit 1970.',
    );
  }
  return ms;
}

/** Returns NaN if the value is not a time. */
function parseIsoTime(value: string): number {
  const [, day = '', hour = '00', rest = ':00', zone = 'Z'] = isoTime.exec(value) ?? [];
  // Date accepts February 30; the service rejects it.
  if (!new Date(day).toJSON()?.startsWith(day)) return Number.NaN;
  const offset = zone.replace(/^(...):?(..)?$/, (_, hours, minutes = '00') => `${hours}:${minutes}`);
  return Date.parse(`${day}T${hour}${rest.replace(',', '.')}${offset}`);
}
