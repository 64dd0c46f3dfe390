import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { sliceOf } from '../../../src/core/json/ranges.js';
import { booleanArray, integerArray, jsonbArray, textArray } from '../../../src/storage/connection/array-parameter.js';
import { useStore } from '../../support/store.js';

const setup = useStore();
const asIs = <T>(value: T) => value;

/** Lengths of texts: none, short, around what is copied (8 KiB), and longer than any buffer (64 KiB). More takes a minute to send. */
const length = fc.oneof(
  fc.constant(0),
  { arbitrary: fc.integer({ min: 1, max: 40 }), weight: 3 },
  fc.integer({ min: 7_500, max: 8_500 }),
  fc.integer({ min: 65_000, max: 70_000 }),
);
/** Texts of one to four bytes a character. */
const text = fc
  .tuple(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), length)
  .map(([short, characters]) => {
    const repeated = short.replaceAll('\0', '0').repeat(characters).slice(0, characters);
    return repeated.toWellFormed();
  });

it('arrive in PostgreSQL as they are, null and empty ones included', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(text), { maxLength: 8 }), async (texts) => {
      const bytes = texts.map((each) => (each === null ? null : sliceOf(Buffer.from(each))));
      const json = texts.map((each) =>
        each === null ? null : [Buffer.from('{"t": '), Buffer.from(JSON.stringify(each)), Buffer.from('}')],
      );
      const lengths = texts.map((each) => (each === null ? -1 : each.length));
      const flags = texts.map((each) => (each === null ? null : each.length > 3));
      const [row] = await setup.rows(sql<Record<string, unknown>>`SELECT
        to_jsonb(${textArray(texts, asIs)}::text[]) AS texts, -- the driver parses JSON faster than arrays
        to_jsonb(${textArray(bytes, asIs)}::text[]) AS bytes,
        (SELECT jsonb_agg(each->>'t') FROM unnest(${jsonbArray(json, asIs)}::jsonb[]) AS each) AS json,
        ${integerArray(lengths, asIs)}::integer[] AS lengths,
        ${booleanArray(flags, asIs)}::boolean[] AS flags`);
      expect(row).toEqual({ texts, bytes: texts, json: texts.length === 0 ? null : texts, lengths, flags });
    }),
    { numRuns: 60 },
  );
});

it('keep every digit of JSON', async () => {
  const numbers = ['12345678901234567890', '1.10', '1e400'].map((digits) => sliceOf(Buffer.from(digits)));
  const [row] = await setup.rows(sql<{ digits: string[] }>`
    SELECT array_agg(number::text) AS digits FROM unnest(${jsonbArray(numbers, asIs)}::jsonb[]) AS number`);
  expect(row?.digits.slice(0, 2)).toEqual(['12345678901234567890', '1.10']);
  expect(row?.digits[2]).toBe(`1${'0'.repeat(400)}`);
});
