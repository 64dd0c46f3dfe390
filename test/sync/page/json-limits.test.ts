import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exceededLimit, isUnderflow, JSON_LIMITS, mayExceedLimits } from '../../../src/sync/page/json-limits.js';
import { factsOf } from '../../support/json-facts.js';

const bytes = (text: string) => new TextEncoder().encode(text);
const mayExceed = (text: string) => mayExceedLimits(factsOf(bytes(text)), text.length);

describe('nesting', () => {
  it('is limited exactly when arrays and objects are nested, at any depth', () => {
    const text = (depth: number) => `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`;
    expect(exceededLimit([bytes(text(JSON_LIMITS.depth))])).toBeNull();
    expect(exceededLimit([bytes(text(JSON_LIMITS.depth + 2))])).toBe('nesting');
    expect(exceededLimit([bytes(text(1_000_000))])).toBe('nesting');
    expect(mayExceed(text(JSON_LIMITS.depth + 2))).toBe(true);
  });

  it('is not exceeded when containers are next to each other', () => {
    expect(exceededLimit([bytes(`[${'[{"a":[]}],'.repeat(10_000)}1]`)])).toBeNull();
  });
});

describe('numbers with exponents', () => {
  /** How many characters more a number has in full, by writing it. */
  const gain = (whole: string, decimals: string, exponent: number) => {
    const point = whole.length + exponent;
    const digits = whole + decimals;
    const full = `${digits.slice(0, Math.max(0, point)).padEnd(Math.max(0, point), '0')}.${'0'.repeat(Math.max(0, -point))}${digits.slice(Math.max(0, point))}`;
    return full.length;
  };

  it('are limited by their expanded length when added up', () => {
    const bound = JSON_LIMITS.expansion;
    expect(exceededLimit([bytes(`{"a":[1e${bound}]}`)])).toBeNull();
    expect(exceededLimit([bytes(`{"a":[1e${bound + 10}]}`)])).toBe('expansion');
    expect(exceededLimit([bytes(`{"a":[1e${bound / 2},{"b":2.5E-${bound / 2}},1e0100]}`)])).toBe('expansion');
    expect(exceededLimit([bytes(`[${'1e99,'.repeat(5_000)}1e-99]`)])).toBeNull();
    expect(exceededLimit([bytes(`[${'1e99,'.repeat(15_000)}1e-99]`)])).toBe('expansion');
    expect(exceededLimit([bytes('[1e99999999999999999999999]')])).toBe('expansion');
  });

  it('are not offset by numbers that become shorter', () => {
    const shrinking = `1${'0'.repeat(1_000)}e-1000,`;
    expect(exceededLimit([bytes(`[${shrinking.repeat(2_000)}1e1100000]`)])).toBe('expansion');
  });

  it.each(['1e9', '1E-9', '-1.5e+09', '0.1e-00009'])('are not limited when they are as small as in %s', (number) => {
    const text = `[${`${number},`.repeat(300_000)}1]`;
    expect(exceededLimit([bytes(text)])).toBeNull();
    expect(mayExceed(text)).toBe(false);
  });

  it.each(['1e10', '1E-10', '-1.5e+010'])('are limited when they are as large as in %s', (number) => {
    const text = `[${`${number},`.repeat(300_000)}1]`;
    expect(exceededLimit([bytes(text)])).toBe('expansion');
    expect(mayExceed(text)).toBe(true);
  });

  it('are ignored in strings', () => {
    expect(exceededLimit([bytes(`{"1e9999999":"1e9999999 \\" 1e9999999","a\\\\":1}`)])).toBeNull();
  });

  it('are found in the text when they may matter', () => {
    const number = fc.tuple(
      fc.stringMatching(/^-?(0|[1-9]\d{0,5})$/),
      fc.stringMatching(/^(\.\d{1,5})?$/),
      fc.constantFrom('e', 'E'),
      fc.constantFrom('', '+', '-'),
      fc.stringMatching(/^0{0,3}[1-9]\d{1,6}$/),
    );
    const around = fc.constantFrom(['[', ']'], ['{"a":', '}'], ['[0, ', ' , 1]'], ['{"e":"x","b":\n', '\n}']);
    fc.assert(
      fc.property(number, around, (parts, [before, after]) => {
        const json = `${before}${parts.join('')}${after}`;
        expect(mayExceed(json)).toBe(true);
      }),
    );
  });

  it('gain the characters of their expanded form', () => {
    const parts = fc.tuple(
      fc.stringMatching(/^[1-9]\d{0,5}$/),
      fc.stringMatching(/^\d{1,5}$/),
      fc.integer({ min: 1_000, max: 5_000 }),
      fc.boolean(),
    );
    fc.assert(
      fc.property(parts, ([whole, decimals, size, negative]) => {
        const exponent = negative ? -size : size;
        const number = `${whole}.${decimals}e${exponent}`;
        // As many as surely fit, and as many as surely do not; the point and a leading zero may or may not be counted.
        const each = gain(whole, decimals, exponent) - number.length;
        const fitting = Math.floor(JSON_LIMITS.expansion / (each + 2));
        const list = (count: number) => bytes(`[${Array.from({ length: count }, () => number).join()}]`);
        expect(exceededLimit([list(fitting)])).toBeNull();
        expect(exceededLimit([list(Math.ceil(JSON_LIMITS.expansion / (each - 2)) + 1)])).toBe('expansion');
      }),
      { numRuns: 50 },
    );
  });

  it('are not reported for ordinary strings and numbers', () => {
    const json =
      '{"id":"8f3e12ab-1e10-4e99-ae77-3e5512345678","a":1e5,"b":2.5E-07,"t":"Straße12","c":[0.000001,12345678901234567890]}';
    expect(mayExceed(json)).toBe(false);
  });
});

describe('elements', () => {
  it('are counted separately for each container', () => {
    const many = JSON_LIMITS.elements;
    expect(exceededLimit([bytes(`[[${'1,'.repeat(many - 1)}1],{"a":[${'1,'.repeat(many - 1)}1]}]`)])).toBeNull();
    expect(exceededLimit([bytes(`[{"a":[],"b":[${'1,'.repeat(many)}1]}]`)])).toBe('elements');
  });

  it('are checked in every text that is long enough for too many', () => {
    const most = `[${'1,'.repeat(JSON_LIMITS.elements)}1]`;
    expect(mayExceed(most)).toBe(true);
  });
});

describe('underflow', () => {
  it.each([
    ['1e-400', true],
    [`0.${'0'.repeat(400)}1`, true],
    ['-12.5E-400', true],
    ['0', false],
    ['-0.0', false],
    ['0e-400', false],
    ['5e-324', false],
    ['0.5', false],
  ])('%s: %j', (number, expected) => {
    const json = `{"a":1,"n":1,"\\u006e": ${number} }`;
    expect(isUnderflow(bytes(json), 'n')).toBe(expected);
    if (expected) expect(mayExceed(json)).toBe(true);
  });

  it('is not reported when the member is missing', () => {
    expect(isUnderflow(bytes('{"a":1e-400}'), 'n')).toBe(false);
  });
});
