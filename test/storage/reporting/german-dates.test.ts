import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, useStore } from '../../support/store.js';
import { cases } from '../../support/thorough.js';
import { germanDate } from './oracle/dates.js';

const setup = useStore(useDatabase(MIGRATED));

const readDates = async (texts: readonly string[]) => {
  const rows = await setup.rows(sql<{ day: string | null }>`
    SELECT scanfeed_reporting.german_date(text)::text AS day
    FROM unnest(${texts}::text[]) WITH ORDINALITY AS given (text, place) ORDER BY place`);
  return rows.map(({ day }) => day);
};

const NAMES = [
  'Januar',
  'Jan',
  'Jänner',
  'Februar',
  'Feber',
  'März',
  'MAERZ',
  'Mrz',
  'April',
  'Mai',
  'Juni',
  'Jul',
  'August',
].concat(['Sept', 'September', 'Okt', 'November', 'dez', 'DEZEMBER', 'JÄN']);
const ODD = [
  'January',
  'March',
  'May',
  'June',
  'July',
  'October',
  'December',
  'Mais',
  'Maier',
  'Sepember',
  'Junior',
].concat(['Märzen', 'Marz', 'Novem', 'Decembre', 'Mae', 'Juno', 'janvier', 'août']);
/** Texts that are dates, or almost. */
const date = fc
  .tuple(
    fc.constantFrom('', '', ' ', '\t'),
    fc.oneof(fc.nat(33).map(String), fc.constantFrom('05', '29', '30', '31', '001')),
    fc.constantFrom('. ', '.', '', ' ', '.\u00a0', ' .'),
    fc.oneof(
      fc.constantFrom(...NAMES),
      fc.constantFrom(...ODD),
      fc.nat(13).map((month) => `${month}.`),
    ),
    fc.constantFrom(' ', ' ', '. ', '', '.'),
    fc.oneof(
      fc.integer({ min: 1895, max: 2101 }).map(String),
      fc.constantFrom('26', '69', '70', '0000', '0001', '226', '2000'),
    ),
    fc.constantFrom('', '', ' ', '\n', '.'),
  )
  .map((parts) => parts.join(''));
const isoDate = fc
  .tuple(fc.integer({ min: 1895, max: 2101 }), fc.nat(13), fc.nat(32))
  .map(([year, month, day]) => [year, String(month).padStart(2, '0'), String(day).padStart(2, '0')].join('-'));
const changed = fc
  .tuple(
    fc.oneof(date, isoDate),
    fc.nat(16),
    fc.constantFrom('s', 'n', 'e', '.', '-', '1', ' ', 'ä', 'É', '\u0661', '\u202f', '\v'),
  )
  .map(([text, at, character]) => text.slice(0, at) + character + text.slice(at));

const EXAMPLES = [
  ...['31.12.2026', '1.2.26', '1. 2. 1975', '01.01.75', '1. MÄRZ 2026', '3 Mai 2026', '5. Jänner 2026', '2026-12-31'],
  ...[
    '29.02.2024',
    '29.02.2026',
    '31.04.2026',
    '0.1.2026',
    '1.13.2026',
    '1.1.0000',
    '1.1',
    '32. Mai 2026',
    '1. Foo 2026',
  ],
  ...['', 'infinity', 'now', '9'.repeat(5_000)],
];

it('german_date says what an independent parser says', async () => {
  let dates = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(date, date, isoDate, changed), { minLength: 300, maxLength: 300 }),
      async (texts) => {
        const days = await readDates(texts);
        for (const [place, text] of texts.entries())
          expect({ text, day: days[place] }).toEqual({ text, day: germanDate(text) });
        dates += days.filter((day) => day !== null).length;
      },
    ),
    { numRuns: cases(20, 1_000), examples: [[EXAMPLES]] },
  );
  expect(dates).toBeGreaterThan(500);
});

it('german_date is null when the name of a month has other letters, or is English', async () => {
  const texts = ODD.map((name) => `5. ${name} 2026`);
  expect(await readDates(texts)).toEqual(texts.map(() => null));
});
