import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { readRunTime } from '../../../src/sync/page/timestamps.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { tables, useStore } from '../../support/store.js';
import { CASES, CASES_A_PAGE, deliver, PAGES } from './deliver.js';

const setup = useStore();
let scans = 0;

interface Row {
  /** Microseconds since 1970. */
  readonly micros: string | null;
  readonly original: string | null;
  readonly repaired: boolean;
}

/** Delivers an entry for each time, and returns the stored times. */
async function stored(times: readonly string[]): Promise<readonly Row[]> {
  const scanIds = times.map(() => {
    scans += 1;
    return `scan-${scans}`;
  });
  const entries = times.map((deliveredAt, n) => entryJson({ scanId: scanIds[n], deliveredAt }));
  expect(await deliver(setup, pageJson(entries))).toMatchObject({ inserted: times.length, quarantined: 0 });
  return setup.rows(
    sql<Row>`
      SELECT (extract(epoch FROM delivered_at) * 1000000)::bigint::text AS micros, repaired,
        extra->>'deliveredAt' AS original
      FROM unnest(${scanIds}::text[]) WITH ORDINALITY AS sent (id, position) JOIN ${tables.runs} ON scan_id = id
      ORDER BY position`,
  );
}

/** A date-time in any notation, possibly invalid. */
const dateTime = fc.record({
  year: fc.oneof(
    fc.integer({ min: 0, max: 9999 }),
    fc.integer({ min: 2020, max: 2030 }),
    fc.constantFrom(1, 2001, 2002, 2078, 2079, 9999),
  ),
  month: fc.integer({ min: 0, max: 13 }),
  day: fc.oneof(fc.integer({ min: 1, max: 28 }), fc.integer({ min: 0, max: 32 })),
  hour: fc.integer({ min: 0, max: 24 }),
  minute: fc.oneof(fc.integer({ min: 0, max: 59 }), fc.integer({ min: 0, max: 60 })),
  second: fc.option(fc.integer({ min: 0, max: 61 }), { nil: null, freq: 8 }),
  fraction: fc.oneof(
    fc.constant(''),
    fc.stringMatching(/^[.,]\d{1,20}$/),
    fc.stringMatching(/^\.9{2,9}[49]?$/),
    fc.constant('.0'),
  ),
  letter: fc.constantFrom('T', 'T', 't'),
  zone: fc.oneof(
    fc.constantFrom('Z', 'Z', 'z', ''),
    fc
      .tuple(
        fc.constantFrom('+', '-'),
        fc.integer({ min: 0, max: 16 }),
        fc.integer({ min: 0, max: 59 }),
        fc.constantFrom(':', ''),
      )
      .map(([sign, hours, minutes, colon]) => `${sign}${two(hours)}${colon}${two(minutes)}`),
    fc.integer({ min: 0, max: 14 }).map((hours) => `+${two(hours)}`),
  ),
});
type DateTime = typeof dateTime extends fc.Arbitrary<infer T> ? T : never;

const two = (number: number) => String(number).padStart(2, '0');
const written = ({ year, month, day, hour, minute, second, fraction, letter, zone }: DateTime) =>
  `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}${letter}${two(hour)}:${two(minute)}` +
  `${second === null ? '' : `:${two(second)}${fraction}`}${zone}`;

const MICROS_A_DAY = 86_400_000_000n;

/** Returns the days since 1970, without the platform's calendar. */
function daysSince1970(year: number, month: number, day: number): number {
  const leap = (y: number) => (y % 4 === 0 && y % 100 !== 0) || y % 400 === 0;
  const leapDays = (y: number) => Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400);
  const before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month - 1] as number;
  const thisYear = before + (month > 2 && leap(year) ? 1 : 0) + day - 1;
  return (year - 1970) * 365 + leapDays(year - 1) - leapDays(1969) + thisYear;
}

/** Returns the instant in microseconds; two values if the seventh decimal is exactly half; null for an invalid time. */
function instantsOf(time: DateTime): readonly bigint[] | null {
  const { year, month, day, hour, minute, zone } = time;
  const second = time.second ?? 0;
  const decimals = time.second === null ? '' : time.fraction.slice(1);
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 60) return null;
  const [thisMonth, nextMonth] = [month, month === 12 ? 1 : month + 1];
  const length = daysSince1970(month === 12 ? year + 1 : year, nextMonth, 1) - daysSince1970(year, thisMonth, 1);
  if (day > length || (second === 60 && /[1-9]/.test(decimals))) return null;
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? [];
  if (Number(hours) > 14) return null;
  const offset = BigInt((Number(hours) * 60 + Number(minutes ?? 0)) * (sign === '-' ? -1 : 1));
  const seconds = (BigInt(hour * 60 + minute) - offset) * 60n + BigInt(second);
  const whole = BigInt(daysSince1970(year, month, day)) * MICROS_A_DAY + seconds * 1_000_000n;
  const padded = decimals.padEnd(7, '0');
  const down = whole + BigInt(padded.slice(0, 6));
  const rest = padded.slice(6);
  if (/^50*$/.test(rest)) return [down, down + 1n];
  return [rest > '5' ? down + 1n : down];
}

/** The times that a run can have; others mean that there is none. */
const FIRST = BigInt(daysSince1970(2002, 1, 1)) * MICROS_A_DAY;
const END = BigInt(daysSince1970(2079, 1, 1)) * MICROS_A_DAY;
const inRange = (instant: bigint) => instant >= FIRST && instant < END;

describe('times', () => {
  it(`are read the same by PostgreSQL, this process and an independent calendar when they are date-times (${CASES} cases)`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(dateTime, { minLength: CASES_A_PAGE, maxLength: CASES_A_PAGE }), async (times) => {
        const texts = times.map(written);
        const rows = await stored(texts);
        for (const [n, time] of times.entries()) {
          const { micros, original, repaired } = rows[n] as Row;
          const instants = instantsOf(time)?.filter(inRange) ?? [];
          if (instants.length === 0)
            expect({ micros, original, repaired }).toEqual({ micros: null, original: texts[n], repaired: true });
          else {
            expect(instants.map(String)).toContain(micros);
            expect({ original, repaired }).toEqual({ original: null, repaired: false });
            expect(readRunTime(texts[n] as string)?.at.getTime()).toBe(floorMillis(BigInt(micros as string)));
          }
        }
      }),
      PAGES,
    );
  });

  it(`are kept in extra, or read the same by PostgreSQL and this process, when they are any text (${CASES} cases)`, async () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom('now', 'infinity', '-infinity', 'epoch', 'today', 'allballs', '2026-01-02', '1767340800000'),
      // A time with one changed character.
      fc
        .tuple(
          dateTime.map(written),
          fc.nat(30),
          fc.constantFrom('', ' ', '0', '9', ':', '-', '+', 'Z', 'T', 'BC', '٣'),
        )
        .map(([time, at, char]) => time.slice(0, at) + char + time.slice(at + 1)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: CASES_A_PAGE, maxLength: CASES_A_PAGE }), async (texts) => {
        const rows = await stored(texts);
        for (const [n, { micros, original }] of rows.entries()) {
          const read = readRunTime(texts[n] as string);
          if (read === null) expect({ micros, original }).toEqual({ micros: null, original: texts[n] });
          else expect(floorMillis(BigInt(micros as string))).toBe(read.at.getTime());
        }
      }),
      PAGES,
    );
  });
});

function floorMillis(micros: bigint): number {
  const rest = micros % 1000n;
  return Number((micros - (rest < 0n ? rest + 1000n : rest)) / 1000n);
}
