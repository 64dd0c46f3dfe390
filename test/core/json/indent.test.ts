import fc from 'fast-check';
import { expect, it } from 'vitest';
import { indentJson } from '../../../src/core/json/indent.js';

it('breaks lines like JSON.stringify when it formats any JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 1, 4), (value, indent) => {
      expect(indentJson(JSON.stringify(value, null, indent))).toBe(JSON.stringify(value, null, 2));
    }),
  );
});

it('keeps the text of each value when it formats JSON', () => {
  expect(indentJson('{"a":1.10,"b":[12345678901234567890,1E+2],"c":"{,\\"[\\\\"}')).toBe(
    '{\n  "a": 1.10,\n  "b": [\n    12345678901234567890,\n    1E+2\n  ],\n  "c": "{,\\"[\\\\"\n}',
  );
});

it('formats JSON when a string is very long', () => {
  const long = `["${'a\\n'.repeat(3_000_000)}"]`;
  expect(indentJson(long)).toHaveLength(long.length + 4);
});
