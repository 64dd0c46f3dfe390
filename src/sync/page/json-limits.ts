import { memberRanges, textOf } from '../../core/json/ranges.js';
import type { JsonFacts } from '../../core/json/scan.js';
import { isDigit, JSON_BYTES, stringEnd } from '../../core/json/tokens.js';

const { QUOTE, COMMA, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT } = JSON_BYTES;
const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;

/** Limits of the JSON of one entry (docs/decisions/0007-limits-of-an-entry.md). */
export const JSON_LIMITS = {
  /** Maximum nesting of containers. PostgreSQL fails at some 16,000, many readers at 512 or 1,000. */
  depth: 500,
  /** Maximum number of elements or members of one container. PostgreSQL fails at 2^24 and 2^23, with an internal error (XX000). */
  elements: 5_000_000,
  /** Maximum number of characters that the numbers of an entry gain when written in full: PostgreSQL accepts `1e131071`. */
  expansion: 2 ** 20,
} as const;

/** Smallest exponent that counts, as in the quick check. With a smaller one a number becomes at most four times as long. */
const COUNTED_EXPONENT = 10;

/** The limit that an entry exceeds. */
export type ExceededLimit = 'nesting' | 'elements' | 'expansion';

/**
 * Returns whether an entry of this text may exceed a limit or have a number that is too close to zero for a double. Fast; it
 * may report too much, but never misses an entry.
 */
export function mayExceedLimits({ depth, hasUnusualNumbers }: JsonFacts, bytes: number): boolean {
  return depth > JSON_LIMITS.depth || hasUnusualNumbers || bytes > 2 * JSON_LIMITS.elements;
}

/**
 * Returns the limit that the bytes of a value exceed; null if none. Members that are hidden by later ones of the same name
 * count, since PostgreSQL reads them too.
 * @param pieces the bytes one after the other, cut between values
 */
export function exceededLimit(pieces: readonly Uint8Array[]): ExceededLimit | null {
  const elements: number[] = []; // of each open container
  let expansion = 0;
  for (const json of pieces) {
    for (let at = 0; at < json.length; ) {
      const byte = json[at] as number;
      if (byte === QUOTE) at = stringEnd(json, at);
      else if (byte === MINUS || isDigit(byte)) {
        const end = numberEnd(json, at);
        expansion += expansionOf(json, at, end);
        if (expansion > JSON_LIMITS.expansion) return 'expansion';
        at = end;
      } else {
        const limit = countContainer(elements, byte);
        if (limit !== null) return limit;
        at += 1;
      }
    }
  }
  return null;
}

/** Counts the open containers and the elements of each. Returns the limit that they exceed. */
function countContainer(elements: number[], byte: number): ExceededLimit | null {
  if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
    if (elements.push(1) > JSON_LIMITS.depth) return 'nesting';
  } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) elements.pop();
  else if (byte === COMMA) {
    const count = (elements.pop() ?? 0) + 1;
    if (count > JSON_LIMITS.elements) return 'elements';
    elements.push(count);
  }
  return null;
}

/** Returns whether a member of this name is a number other than zero that becomes zero as a double. */
export function isUnderflow(json: Uint8Array, name: string): boolean {
  const range = memberRanges(json).get(name);
  if (range === undefined) return false;
  const text = textOf(json, range);
  return Number(text) === 0 && /^[^eE]*[1-9]/.test(text);
}

function numberEnd(json: Uint8Array, at: number): number {
  let end = at + 1;
  for (let byte = json[end]; byte !== undefined && isOfNumber(byte); byte = json[end]) end += 1;
  return end;
}

/** Returns how many characters longer a number is without its exponent, as PostgreSQL writes it; 0 if the exponent is small. */
function expansionOf(json: Uint8Array, start: number, end: number): number {
  let exponentAt = start;
  while (exponentAt < end && !isExponent(json[exponentAt] as number)) exponentAt += 1;
  if (exponentAt === end) return 0;
  const point = json.subarray(start, exponentAt).indexOf(POINT);
  const decimals = point === -1 ? 0 : exponentAt - start - point - 1;
  const exponent = Number(textOf(json, { start: exponentAt + 1, end }));
  if (Math.abs(exponent) < COUNTED_EXPONENT) return 0;
  const whole = exponentAt - start - decimals;
  return Math.max(0, Math.max(0, whole + exponent) + Math.max(0, decimals - exponent) - (end - start));
}

/** `e` or `E`. */
function isExponent(byte: number): boolean {
  return (byte | 0x20) === 0x65;
}

/** Digits, signs, the point and the letter of an exponent. */
function isOfNumber(byte: number): boolean {
  return isDigit(byte) || byte === PLUS || byte === MINUS || byte === POINT || isExponent(byte);
}
