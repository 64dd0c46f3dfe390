import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { parseNoProxy } from '../core/no-proxy.js';
import { succeeds } from '../core/succeeds.js';

/** How a setting is parsed. Its description is that of the allowed values. */
export type Kind<T> = z.ZodType<T, string>;

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const UNIT_BYTES = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 } as const;

/** A duration in milliseconds. */
export function duration(min: string, max: string): Kind<number> {
  const allowed = `a duration from ${min} to ${max}, such as 500ms, 30s, 5m, 24h or 7d`;
  return measure(UNIT_MS, min, max).describe(allowed);
}

/** A duration, or null for `off`. */
export function durationOrOff(min: string, max: string): Kind<number | null> {
  const given = duration(min, max);
  const off = z.literal('off').transform(() => null);
  return z.union([off, given]).describe(`${given.description}; or off`);
}

/** A size in bytes. */
export function size(min: string, max: string): Kind<number> {
  const allowed = `a size from ${min} to ${max}, in B, KiB, MiB or GiB`;
  return measure(UNIT_BYTES, min, max, z.number().int()).describe(allowed);
}

type Units = Readonly<Record<string, number>>;

/** A number with a unit. The bounds are in the notation of users, such as `30s`. */
const measure = (units: Units, min: string, max: string, number = z.number()) =>
  scaled(units).pipe(number.min(scaled(units).parse(min)).max(scaled(units).parse(max)));

function scaled(units: Units): z.ZodType<number, string> {
  const form = new RegExp(`^(\\d{1,12}(?:\\.\\d{1,6})?) ?(${Object.keys(units).join('|')})$`);
  return z
    .string()
    .regex(form)
    .transform((text) => {
      const [, amount, unit] = form.exec(text) ?? [];
      return Number(amount) * (units[unit ?? ''] ?? Number.NaN);
    });
}

export function integer(min: number, max: number, note = ''): Kind<number> {
  return z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .pipe(z.number().min(min).max(max))
    .describe(`a whole number from ${min} to ${max}${note}`);
}

export const rate: Kind<number> = z
  .string()
  .regex(/^\d{1,5}(\.\d{1,6})?$/)
  .transform(Number)
  .pipe(z.number().gt(0).max(10_000))
  .describe('a number greater than 0, up to 10000, such as 20 or 0.5');

export const flag: Kind<boolean> = z
  .stringbool({ truthy: ['true', 'yes', 'on', '1'], falsy: ['false', 'no', 'off', '0'] })
  .describe('true or false (also yes, no, on, off, 1, 0)');

export function oneOf<const T extends readonly [string, ...string[]]>(...values: T): Kind<T[number]> {
  return z.enum(values).describe(values.join(', '));
}

/** A comma-separated subset of `values`. The result has each value once, in the order of `values`. */
export function subset<const T extends string>(...values: readonly T[]): Kind<readonly T[]> {
  const chosen = z
    .string()
    .transform((text) => text.split(',').map((part) => part.trim()))
    .pipe(z.array(z.enum(values)))
    .transform((given) => values.filter((value) => given.includes(value)));
  return chosen.describe(`one or more of ${values.join(', ')}, separated by commas`);
}

export function text(allowed: string, form: RegExp): Kind<string> {
  return z.string().regex(form).describe(allowed);
}

const TIME_ZONE = /^(UTC|[A-Za-z]+(\/[A-Za-z0-9_+-]+)+)$/;

/** Only names that mean the same to everyone: PostgreSQL takes `CET` for an offset and `+01:00` for its opposite. */
export const timeZone: Kind<string> = z
  .string()
  .regex(TIME_ZONE)
  .refine((name) => succeeds(() => new Intl.DateTimeFormat('en', { timeZone: name })))
  .describe('UTC, or an area and a place such as Europe/Berlin');

/** A name that PostgreSQL accepts without quotes and does not reserve. */
export function identifier(maxBytes: number, ...reserved: readonly string[]): Kind<string> {
  const except = ['pg_…', ...reserved].join(', ');
  return z
    .string()
    .regex(/^[a-z_][a-z0-9_]*$/)
    .max(maxBytes)
    .refine((name) => !name.startsWith('pg_') && !reserved.includes(name))
    .describe(`lower-case letters, digits and _, not starting with a digit, at most ${maxBytes} bytes; not ${except}`);
}

const ZONED_TIME = z.regexes.datetime({ offset: true });

/** Where a feed without a cursor starts. The interface accepts only times with a zone (4.2, `since`). */
export const feedStart: Kind<'beginning' | 'now' | 'live' | Date> = z
  .union([
    z.enum(['beginning', 'now', 'live']),
    z
      .string()
      .regex(ZONED_TIME)
      .transform((time) => new Date(time)),
  ])
  .describe('beginning, now, live, or an ISO 8601 time with a zone, such as 2026-01-31T00:00:00Z');

/** Only characters that an HTTP header can hold. Checked here because libraries quote a header that they refuse. */
export const apiKey: Kind<string> = text(
  'the key alone: visible ASCII characters, no spaces or line breaks',
  /^[\x21-\x7e]{1,8192}$/,
);

/** An absolute http(s) URL without credentials, query or fragment. A trailing slash is removed. */
export const baseUrl: Kind<URL> = z
  .string()
  .transform((text, context) => {
    const url = URL.canParse(text) ? new URL(text) : null;
    const reason = url === null ? 'it is not an absolute URL' : baseUrlProblem(url, text);
    if (url === null || reason !== null) {
      context.addIssue({ code: 'custom', message: reason ?? '', input: text });
      return z.NEVER;
    }
    url.pathname = url.pathname.replace(/\/+$/, '');
    return url;
  })
  .describe(
    'the https: URL of the service with its /v1 (or http: to a loopback address), without user, query or fragment',
  );

function baseUrlProblem(url: URL, text: string): string | null {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return `${url.protocol} is not https:`;
  if (url.username !== '' || url.password !== '') return 'it contains a user or a password';
  if (/[?#]/.test(text)) return 'it contains a query or a fragment';
  return null;
}

const httpUrl: Kind<string> = z.url({ protocol: /^https?$/ });
export const collectorUrl = httpUrl.describe('the URL of a collector, such as http://collector.example:4318');
export const proxyUrl = httpUrl.describe('the URL of a proxy, such as http://proxy.example:3128');

export const noProxy: Kind<string> = z
  .string()
  .refine((list) => succeeds(() => parseNoProxy(list)))
  .describe(
    'host names (each covers its subdomains), IP addresses, and subnets such as 10.0.0.0/8, each with an optional port; or *',
  );

export const pemCertificates: Kind<string> = z.string().refine((text) => succeeds(() => new X509Certificate(text)));
