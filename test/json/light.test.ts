import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LIGHT_FROM_BYTES, type Lightening, parseLight } from '../../src/json/light.js';

const OF_ENTRIES: Lightening = { depth: 3, keep: new Set(['scanId', 'status']) };
const parsed = (text: string) => parseLight(Buffer.from(text), OF_ENTRIES);

/** Makes a page large, and is no member of an entry. */
const BALLAST = `"ballast":"${'.'.repeat(LIGHT_FROM_BYTES)}"`;
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
        const { value, emptied: some } = parsed(text('value'));
        expect(value).toEqual(JSON.parse(text('light')));
        expect(some).toBe(text('value') !== text('light'));
      }),
      { numRuns: 60 },
    );
  });

  it('finds the names that steer however they are written, and of equal names the last', () => {
    const text = `{"items":[{"sc\\u0061nId":"${'s'.repeat(LONG_BYTES)}","data":{"a":"${'x'.repeat(LONG_BYTES)}"},"data":7}],${BALLAST}}`;
    const { value } = parsed(text);
    expect((value as { items: unknown }).items).toEqual([{ scanId: 's'.repeat(LONG_BYTES), data: 7 }]);
  });

  it('leaves nothing empty where the text is small, or where all of it is wanted', () => {
    const items = `{"items":[{"data":"${'x'.repeat(LONG_BYTES)}"}]`;
    expect(parsed(`${items}}`)).toEqual({ value: JSON.parse(`${items}}`), emptied: false });
    expect(parseLight(Buffer.from(`${items},${BALLAST}}`), undefined).emptied).toBe(false);
  });

  it('refuses what is cut short or malformed inside a value that is left empty', () => {
    const data = `{"a":[${'"x",'.repeat(LIGHT_FROM_BYTES / 4)}1]}`;
    const json = `{"items":[{"data":${data}}]}`;
    expect(parsed(json)).toEqual({ value: { items: [{ data: {} }] }, emptied: true });
    for (const bad of [json.slice(0, -LONG_BYTES), json.replace('"x","x"', '"x" "x"'), json.replace('"x"', '"\\x"')]) {
      expect(() => parsed(bad)).toThrow(SyntaxError);
    }
  });
});
