import fc from 'fast-check';
import { codePoint } from '../../support/code-points.js';

/** A JSON value as sent and as it must be stored. */
export interface Sent {
  /** May contain U+0000 and lone surrogates, escaped in any way. */
  readonly sent: string;
  /** The same value with U+FFFD instead; each string is repaired, not the text. */
  readonly expected: string;
}

/** Numbers as text: many digits, trailing zeros, exponents. */
export const numberText = (exponents = 300): fc.Arbitrary<string> =>
  fc
    .record({
      sign: fc.constantFrom('', '-'),
      whole: fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9]\d{0,40}$/)),
      decimals: fc.oneof(fc.constant(''), fc.stringMatching(/^\.\d{1,40}$/), fc.stringMatching(/^\.\d{0,5}0{1,9}$/)),
      exponent: fc.option(fc.integer({ min: -exponents, max: exponents }), { nil: null, freq: 2 }),
      style: fc.constantFrom('e', 'E', 'e0'),
      plus: fc.constantFrom('', '+'),
    })
    .map(({ sign, whole, decimals, exponent, style, plus }) => {
      const [letter, zeros] = [style[0], style.slice(1)];
      const signs = exponent !== null && exponent < 0 ? '-' : plus;
      return `${sign}${whole}${decimals}${exponent === null ? '' : `${letter}${signs}${zeros}${Math.abs(exponent)}`}`;
    });

/** Formats a number without its exponent, with every digit, as PostgreSQL formats a numeric. */
export function inFull(number: string): string {
  const [, sign = '', whole = '', decimals = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? [];
  const digits = whole + decimals;
  const point = whole.length + Number(exponent);
  const before = digits.slice(0, Math.max(0, point)).padEnd(point, '0').replace(/^0+/, '') || '0';
  const after = point >= 0 ? digits.slice(point) : '0'.repeat(-point) + digits;
  return `${/[1-9]/.test(digits) ? sign : ''}${before}${after === '' ? '' : `.${after}`}`;
}

/** Any string, with its escapes written in different ways. */
export const stringText = (): fc.Arbitrary<Sent> =>
  fc
    .tuple(
      fc.oneof(
        fc.string({ unit: codePoint() }),
        fc.string({ unit: 'grapheme' }),
        fc
          .array(fc.constantFrom('\0', '\ud800', '\udc00', '\ud83d\ude00', '\\', 'u0000', '"', 'ß', '\ufffd'))
          .map((of) => of.join('')),
      ),
      fc.constantFrom(escaped.plain, escaped.all, escaped.upper),
    )
    .map(([value, write]) => ({
      sent: write(value),
      expected: JSON.stringify(value.toWellFormed().replaceAll('\0', '\ufffd')),
    }));

const units = (text: string) => Array.from({ length: text.length }, (_, n) => text.charCodeAt(n));
const escaped = {
  plain: (text: string) => JSON.stringify(text),
  all: (text: string) =>
    `"${units(text)
      .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
      .join('')}"`,
  upper: (text: string) =>
    JSON.stringify(text).replace(
      /[^ -~]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
    ),
};

const joined = (open: string, parts: readonly Sent[], close: string): Sent => ({
  sent: `${open}${parts.map(({ sent }) => sent).join(' ,\n')}${close}`,
  expected: `${open}${parts.map(({ expected }) => expected).join()}${close}`,
});

const memberOf = ([name, value]: readonly [Sent, Sent]): Sent => ({
  sent: `${name.sent}\t:${value.sent}`,
  expected: `${name.expected}:${value.expected}`,
});

/** Any JSON value; an object may have equal names. */
export const jsonText = (): fc.Arbitrary<Sent> =>
  fc.letrec<{ value: Sent }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom('null', 'true', 'false', '{}', '[]', '""').map((text) => ({ sent: text, expected: text })),
      numberText().map((text) => ({ sent: text, expected: text })),
      stringText(),
      fc.array(tie('value'), { maxLength: 5 }).map((values) => joined('[', values, ']')),
      fc
        .array(fc.tuple(fc.oneof(stringText(), memberName()), tie('value')), { maxLength: 5 })
        .map((members) => joined('{', members.map(memberOf), '}')),
    ),
  })).value;

/** Names that are special in JavaScript or in the interface, or are repeated. */
export const memberName = (): fc.Arbitrary<Sent> =>
  fc
    .constantFrom('__proto__', 'constructor', 'toString', 'scanId', 'items', 'data', 'a', 'b', '')
    .map((name) => ({ sent: JSON.stringify(name), expected: JSON.stringify(name) }));
