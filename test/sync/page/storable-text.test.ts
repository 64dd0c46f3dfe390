import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isStorable, repairJson } from '../../../src/sync/page/storable-text.js';
import { codePoint } from '../../support/code-points.js';

const repaired = (json: string) => Buffer.from(repairJson(Buffer.from(json))).toString();

describe('repairing JSON', () => {
  it.each([
    ['"a\\u0000b"', '"a\\ufffdb"'],
    ['"\\ud800"', '"\\ufffd"'],
    ['"\\udc00x"', '"\\ufffdx"'],
    ['"\\ud83d\\ude00"', '"\\ud83d\\ude00"'],
    ['"\\ud83d\\ud83d\\ude00"', '"\\ufffd\\ud83d\\ude00"'],
    ['"\\\\u0000"', '"\\\\u0000"'],
    ['"\\\\\\u0000"', '"\\\\\\ufffd"'],
    ['{"k\\u0000":12345678901234567890}', '{"k\\ufffd":12345678901234567890}'],
  ])('%s becomes %s', (text, expected) => {
    expect(repaired(text)).toBe(expected);
  });

  it('makes all strings storable and changes nothing else', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint() }), (value) => {
        const text = JSON.parse(repaired(JSON.stringify(value))) as string;
        expect(isStorable(text)).toBe(true);
        expect(text).toBe(value.toWellFormed().replaceAll('\0', '\ufffd'));
      }),
    );
  });
});
