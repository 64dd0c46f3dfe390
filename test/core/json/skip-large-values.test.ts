import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  parseSkippingLargeValues,
  SKIPPING_FROM_BYTES,
  type SkippableValues,
  TooManyValues,
} from '../../../src/core/json/skip-large-values.js';
import { cases } from '../../support/thorough.js';

const OF_ENTRIES: SkippableValues = {
  depth: 3,
  entries: 'items',
  isSkippable: ({ depth, name }) =>
    depth === 1 ? name === 'nextCursor' : depth === 3 && !['scanId', 'status'].includes(name),
};
const parsed = (text: string) => parseSkippingLargeValues(Buffer.from(text), OF_ENTRIES);

/** Makes a page large, and is no member of an entry. */
const BALLAST = `"ballast":"${'.'.repeat(SKIPPING_FROM_BYTES)}"`;
const LONG_BYTES = 5_000;

/** What a long value of this kind is read as. */
function emptied(value: unknown): unknown {
  if (typeof value === 'string') return '';
  return Array.isArray(value) ? [] : {};
}

const long = fc.oneof(
  fc.string({ minLength: 1 }).map((text) => text.padEnd(LONG_BYTES, '.')),
  fc.array(fc.jsonValue({ maxDepth: 2 })).map((list) => [...list, 'x'.repeat(LONG_BYTES)]),
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })).map((of) => ({ ...of, x: 'x'.repeat(LONG_BYTES) })),
);
const member = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }).map((value) => ({ value, light: value })),
  long.map((value) => ({ value, light: emptied(value) })),
);
const name = fc.oneof(fc.constantFrom('data', 'markdown', '__proto__', 'ä"\\', ''), fc.string());

describe('parsing a large page', () => {
  it('gives what JSON.parse gives, but for long members of entries', () => {
    const entry = fc.tuple(
      fc.uniqueArray(fc.tuple(name, member), { maxLength: 5, selector: ([of]) => of }),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 4 }), (entries) => {
        const text = (which: 'value' | 'light') => {
          const items = entries.map(([members, scanId]) => {
            const others = members.filter(([of]) => of !== 'scanId' && of !== 'status');
            const written = others.map(([of, m]) => `${JSON.stringify(of)} : ${JSON.stringify(m[which])}`);
            // What steers is never emptied.
            return `{${[`"scanId":${JSON.stringify(scanId.padEnd(LONG_BYTES))}`, ...written].join(' ,')}}`;
          });
          return `{"items":[${items.join()}],"nextCursor":"c",${BALLAST}}`;
        };
        const { value, valuesSkipped: some } = parsed(text('value'));
        expect(value).toEqual(JSON.parse(text('light')));
        expect(some).toBe(text('value') !== text('light'));
      }),
      { numRuns: cases(20, 60) },
    );
  });

  it('finds the names that steer however they are written, and of equal names the last', () => {
    const text = `{"items":[{"sc\\u0061nId":"${'s'.repeat(LONG_BYTES)}","data":{"a":"${'x'.repeat(LONG_BYTES)}"},"data":7}],${BALLAST}}`;
    const { value } = parsed(text);
    expect((value as { items: unknown }).items).toEqual([{ scanId: 's'.repeat(LONG_BYTES), data: 7 }]);
  });

  it('leaves nothing empty where the text is small, or where all of it is wanted', () => {
    const items = `{"items":[{"data":"${'x'.repeat(LONG_BYTES)}"}]`;
    expect(parsed(`${items}}`)).toEqual({ value: JSON.parse(`${items}}`), valuesSkipped: false });
    expect(parseSkippingLargeValues(Buffer.from(`${items},${BALLAST}}`), undefined).valuesSkipped).toBe(false);
  });

  it('refuses what is cut short or malformed inside a value that is left empty', () => {
    const data = `{"a":[${'"x",'.repeat(SKIPPING_FROM_BYTES / 4)}1]}`;
    const json = `{"items":[{"data":${data}}]}`;
    expect(parsed(json)).toEqual({ value: { items: [{ data: {} }] }, valuesSkipped: true });
    for (const bad of [json.slice(0, -LONG_BYTES), json.replace('"x","x"', '"x" "x"'), json.replace('"x"', '"\\x"')]) {
      expect(() => parsed(bad)).toThrow(SyntaxError);
    }
  });
});

describe('counting values before parsing a large text', () => {
  const MIB = 1024 * 1024;
  const refusal = (text: string, of: SkippableValues | undefined, memoryBytes: number): TooManyValues => {
    try {
      parseSkippingLargeValues(Buffer.from(text), of, memoryBytes);
    } catch (error) {
      if (error instanceof TooManyValues) return error;
    }
    throw new Error('expected too many values');
  };

  it('refuses more values than fit into memory, and says how many there are', () => {
    const text = `{"items":[${'{},'.repeat(499_999)}{}]}`;
    expect(refusal(text, OF_ENTRIES, 64 * MIB)).toMatchObject({
      values: 500_002,
      bytes: text.length,
      entries: 500_000,
    });
    expect(refusal(text, undefined, 64 * MIB)).toMatchObject({ values: 500_002, entries: 0 });
    expect(parsed(text).valuesSkipped).toBe(false); // this process has more memory
  });

  it('refuses a text that is too long to be held as values, however few they are', () => {
    expect(refusal(`{"other":"${'x'.repeat(10 * MIB)}"}`, OF_ENTRIES, 32 * MIB)).toMatchObject({ values: 2 });
  });

  it('does not count values that are left empty, so that any result fits', () => {
    const entry = (data: string) => `{"scanId":"a","data":${data},"markdown":"${'x'.repeat(MIB)}"}`;
    const page = (data: string) => Buffer.from(`{"items":[${Array.from({ length: 200 }, () => entry(data)).join()}]}`);
    // Long ones, and short ones of many values.
    for (const data of [`[${'0,'.repeat(50_000)}0]`, `[${'0,'.repeat(1_500)}0]`]) {
      expect(parseSkippingLargeValues(page(data), OF_ENTRIES, MIB).value).toMatchObject({
        items: Array(200).fill({ data: [] }),
      });
    }
  });

  it('reads no cursor that may be left empty, and looks inside one that is no text', () => {
    const long = 'x'.repeat(2 * MIB);
    expect(parsed(`{"items":[],"nextCursor":"${long}"}`).value).toEqual({ items: [], nextCursor: '' });
    const list = `{"items":[],"nextCursor":[{"data":"${long}"}]}`;
    expect(parsed(list).value).toEqual({ items: [], nextCursor: [{ data: '' }] });
  });
});
