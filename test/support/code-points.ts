import fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };

/**
 * Any code point but a surrogate, as a unit of strings. That is `unit: 'binary'` of fast-check, which takes most of a second to
 * list them all.
 */
export const codePoint = (): fc.Arbitrary<string> =>
  fc.integer({ min: 0, max: 0x10ffff - SURROGATES.count }).map(
    (index) => String.fromCodePoint(index < SURROGATES.first ? index : index + SURROGATES.count),
    (text) => {
      const [character, ...more] = typeof text === 'string' ? text : '';
      const point = character?.codePointAt(0);
      if (point === undefined || more.length > 0 || !character?.isWellFormed()) throw new Error('not a code point');
      return point < SURROGATES.first ? point : point - SURROGATES.count;
    },
  );
