import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  parseSkippingLargeValues,
  type SkippableValues,
  TooManyValues,
} from '../../../src/core/json/skip-large-values.js';
import { factsOf } from '../../support/json-facts.js';
import { cases } from '../../support/thorough.js';

const OF_ENTRIES: SkippableValues = {
  depth: 3,
  entries: 'items',
  isSkippable: ({ depth, name }) =>
    depth === 1 ? name === 'nextCursor' : depth === 3 && !['scanId', 'status'].includes(name),
};
const parsed = (text: string) => parseSkippingLargeValues(Buffer.from(text), OF_ENTRIES);

const LONG_BYTES = 5_000;

/** Returns whether a value is skipped: a string or container of so many bytes. */
function isLarge(value: unknown): boolean {
  if (typeof value !== 'object' && typeof value !== 'string') return false;
  return value !== null && Buffer.byteLength(JSON.stringify(value)) > (typeof value === 'string' ? 4_096 : 64);
}

/** Returns the empty value that a skipped value is replaced by. */
function emptyOf(value: unknown): unknown {
  if (typeof value === 'string') return '';
  return Array.isArray(value) ? [] : {};
}

const long = fc.oneof(
  fc.string({ minLength: 1 }).map((text) => text.padEnd(LONG_BYTES, '.')),
  fc.array(fc.jsonValue({ maxDepth: 2 })).map((list) => [...list, 'x'.repeat(LONG_BYTES)]),
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })).map((of) => ({ ...of, x: 'x'.repeat(LONG_BYTES) })),
);
const member = fc
  .oneof(fc.jsonValue({ maxDepth: 2 }), long)
  .map((value) => ({ value, expected: isLarge(value) ? emptyOf(value) : value }));
const name = fc.oneof(fc.constantFrom('data', 'markdown', '__proto__', 'ä"\\', ''), fc.string());

describe('parsing a page', () => {
  it('skips large members of entries when it parses the rest like JSON.parse', () => {
    const entry = fc.tuple(
      fc.uniqueArray(fc.tuple(name, member), { maxLength: 5, selector: ([of]) => of }),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 4 }), (entries) => {
        const text = (which: 'value' | 'expected') => {
          const items = entries.map(([members, scanId]) => {
            const others = members.filter(([of]) => of !== 'scanId' && of !== 'status');
            const written = others.map(([of, m]) => `${JSON.stringify(of)} : ${JSON.stringify(m[which])}`);
            // A value that a decision depends on is never skipped.
            return `{${[`"scanId":${JSON.stringify(scanId.padEnd(LONG_BYTES))}`, ...written].join(' ,')}}`;
          });
          return `{"items":[${items.join()}],"nextCursor":"c"}`;
        };
        const { value, facts } = parsed(text('value'));
        expect(value).toEqual(JSON.parse(text('expected')));
        expect(facts).toEqual(factsOf(Buffer.from(text('value'))));
      }),
      { numRuns: cases(10, 60) },
    );
  });

  it('recognizes names when they are written with escapes, and takes the last one when a name is repeated', () => {
    const text = `{"items":[{"sc\\u0061nId":"${'s'.repeat(LONG_BYTES)}","data":{"a":"${'x'.repeat(LONG_BYTES)}"},"data":7}]}`;
    const { value } = parsed(text);
    expect((value as { items: unknown }).items).toEqual([{ scanId: 's'.repeat(LONG_BYTES), data: 7 }]);
  });

  it('skips nothing when no value may be skipped', () => {
    const text = `{"items":[{"data":"${'x'.repeat(LONG_BYTES)}"}]}`;
    expect(parseSkippingLargeValues(Buffer.from(text)).value).toEqual(JSON.parse(text));
  });

  it('throws when a skipped value is cut short or malformed', () => {
    const data = `{"a":[${'"x",'.repeat(LONG_BYTES)}1]}`;
    const json = `{"items":[{"data":${data}}]}`;
    expect(parsed(json).value).toEqual({ items: [{ data: {} }] });
    for (const bad of [json.slice(0, -LONG_BYTES), json.replace('"x","x"', '"x" "x"'), json.replace('"x"', '"\\x"')]) {
      expect(() => parsed(bad)).toThrow(SyntaxError);
    }
  });
});

describe('counting values before parsing', () => {
  const MIB = 1024 * 1024;
  const refusal = (text: string, of: SkippableValues | undefined, memoryBytes: number): TooManyValues => {
    try {
      parseSkippingLargeValues(Buffer.from(text), of, memoryBytes);
    } catch (error) {
      if (error instanceof TooManyValues) return error;
    }
    throw new Error('expected too many values');
  };

  it('throws with the number of values when they do not fit into memory', () => {
    const text = `{"items":[${'{},'.repeat(499_999)}{}]}`;
    expect(refusal(text, OF_ENTRIES, 64 * MIB)).toMatchObject({ values: 500_002, bytes: text.length });
    expect(refusal(text, undefined, 64 * MIB)).toMatchObject({ values: 500_002 });
    expect(parsed(text).value).toHaveProperty('items.length', 500_000); // this process has more memory
  });

  it('throws when the text itself does not fit into memory, however few values it has', () => {
    expect(refusal(`{"other":"${'x'.repeat(10 * MIB)}"}`, OF_ENTRIES, 32 * MIB)).toMatchObject({ values: 2 });
  });

  it('does not count values when they are skipped, so that any result fits', () => {
    const entry = (data: string) => `{"scanId":"a","data":${data},"markdown":"${'x'.repeat(MIB / 16)}"}`;
    const page = (data: string) => Buffer.from(`{"items":[${Array.from({ length: 200 }, () => entry(data)).join()}]}`);
    // Long ones, and short ones with many values.
    for (const data of [`[${'0,'.repeat(50_000)}0]`, `[${'0,'.repeat(1_500)}0]`]) {
      expect(parseSkippingLargeValues(page(data), OF_ENTRIES, MIB).value).toMatchObject({
        items: Array(200).fill({ data: [] }),
      });
    }
  });

  it('skips a cursor when it is too long, and its members when it is not a string', () => {
    const long = 'x'.repeat(2 * MIB);
    expect(parsed(`{"items":[],"nextCursor":"${long}"}`).value).toEqual({ items: [], nextCursor: '' });
    const list = `{"items":[],"nextCursor":[{"data":"${long}"}]}`;
    expect(parsed(list).value).toEqual({ items: [], nextCursor: [{ data: '' }] });
  });
});
