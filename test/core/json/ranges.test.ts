import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { elementRanges, memberRanges, textOf } from '../../../src/core/json/ranges.js';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('ranges of JSON values', () => {
  it('returns the elements as written when the value is an array', () => {
    const json = bytes('{"items": [ {"a":"]}\\"", "b":[1,{"c":2}]} , 1.10,"x\\\\", null ,[]], "nextCursor":"n"}');
    const items = memberRanges(json).get('items');
    expect(elementRanges(json, items?.start).map((range) => textOf(json, range))).toEqual([
      '{"a":"]}\\"", "b":[1,{"c":2}]}',
      '1.10',
      '"x\\\\"',
      'null',
      '[]',
    ]);
  });

  it('returns the last member when a key is repeated, even when one is written with escapes', () => {
    const json = bytes('{"data":1,"d\\u0061ta":2}');
    const range = memberRanges(json).get('data');
    expect(range && textOf(json, range)).toBe('2');
  });

  it('returns the elements when they are deeply nested', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(elementRanges(bytes(`[${deep},1]`))).toHaveLength(2);
  });

  it('returns equal values when any array is parsed element by element', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 1, '\t'), (values, indent) => {
        const json = bytes(JSON.stringify(values, null, indent));
        expect(elementRanges(json).map((range) => JSON.parse(textOf(json, range)))).toEqual(
          JSON.parse(JSON.stringify(values)),
        );
      }),
    );
  });

  it('returns equal members when any object is parsed member by member', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), (object) => {
        const json = bytes(JSON.stringify(object));
        const members = [...memberRanges(json)].map(([name, range]) => [name, JSON.parse(textOf(json, range))]);
        expect(Object.fromEntries(members)).toEqual(JSON.parse(JSON.stringify(object)));
      }),
    );
  });
});
