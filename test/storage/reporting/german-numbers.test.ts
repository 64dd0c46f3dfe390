import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, useStore } from '../../support/store.js';
import { cases } from '../../support/thorough.js';
import { germanNumber } from './oracle/numbers.js';

const setup = useStore(useDatabase(MIGRATED));

const digits = (min: number, max: number) => fc.stringMatching(new RegExp(`^[0-9]{${min},${max}}$`));
/** Texts that are numbers in German notation, numbers of JSON, or almost one of these. */
const number = fc
  .record({
    sign: fc.constantFrom('', '', '-', '+', '\u2212'),
    first: fc.oneof(digits(1, 3), digits(1, 5), fc.constantFrom('0', '00', '1')),
    groups: fc.array(
      fc.tuple(fc.constantFrom('.', '.', '.', ' ', '\u00a0', "'"), fc.oneof(digits(3, 3), digits(1, 4))),
      {
        maxLength: 3,
      },
    ),
    rest: fc.oneof(
      fc.constant(''),
      digits(1, 4).map((text) => `,${text}`),
      digits(1, 4).map((text) => `.${text}`),
    ),
    before: fc.constantFrom('', '', '', 'EUR ', '€', ' ', '\t'),
    after: fc.constantFrom('', '', '', ' €', 'EUR', '-', ' -', ' ', '\n', ' %', 'e3'),
  })
  .map(({ sign, first, groups, rest, before, after }) => before + sign + first + groups.flat().join('') + rest + after);
/** Digits of other scripts are not digits, and other marks are no marks. */
const changed = fc
  .tuple(
    number,
    fc.nat(12),
    fc.constantFrom('\u0661', '\uff11', '\u066b', '\u202f', '-', '.', ',', 'x', '\v', '\u2009'),
  )
  .map(([text, at, character]) => text.slice(0, at) + character + text.slice(at));

const EXAMPLES = [
  ...[
    '1.234,56',
    '1 234,5',
    '1\u00a0234,5',
    '12.345.678',
    '5,00-',
    '−3,5',
    '7,50 €',
    'EUR 7',
    ' 0,19 ',
    '1.234 €',
    '1.234-',
  ],
  ...['', ' ', '12.34', '0.500', '000.500', '0.500,5', '012.345,5', '0 500', '0500', '1.234', ' -1.234\t', '−123.456'],
  ...['1,2,3', '1.23,4', 'abc', '12 %', '-5-', '--5', 'NaN', '1e5', ',5'],
];

it('german_number says what an independent parser says', async () => {
  let numbers = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(number, changed), { minLength: 200, maxLength: 200 }), async (texts) => {
      const rows = await setup.rows(sql<{ number: string | null }>`
        SELECT scanfeed_reporting.german_number(text)::text AS number
        FROM unnest(${texts}::text[]) WITH ORDINALITY AS given (text, place) ORDER BY place`);
      for (const [place, text] of texts.entries())
        expect({ text, number: rows[place]?.number }).toEqual({ text, number: germanNumber(text) });
      numbers += rows.filter((row) => row.number !== null).length;
    }),
    { numRuns: cases(20, 1_000), examples: [[EXAMPLES]] },
  );
  expect(numbers).toBeGreaterThan(100);
});

it('german_number is null when the text is too long', async () => {
  const long = sql`SELECT scanfeed_reporting.german_number(${'9'.repeat(5_000)}) AS number`;
  expect(await setup.rows(long)).toEqual([{ number: null }]);
});
