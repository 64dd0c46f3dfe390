import { memberRanges, textOf } from '../../core/json/ranges.js';
import { isDigit, JSON_BYTES, stringEnd } from '../../core/json/scan.js';

const { QUOTE, COMMA, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT } = JSON_BYTES;
const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;

/** How far the JSON of one entry may go (docs/decisions/0007-limits-of-an-entry.md). */
export const JSON_LIMITS = {
  /** Containers within one another. PostgreSQL gives up at some 16,000, many readers at 512 or 1,000. */
  depth: 500,
  /** Elements or members of one container. PostgreSQL fails at 2^24 and 2^23, with an error that blames itself (XX000). */
  elements: 5_000_000,
  /** Characters that the numbers of an entry may gain when they are written in full: `1e131071` is a number of PostgreSQL. */
  expansion: 2 ** 20,
} as const;

/** The limit that an entry exceeds. */
export type ExceededLimit = 'nesting' | 'elements' | 'expansion';

/** An exponent of two digits or more. May see one in a string; sees every one of a number. */
const LONG_EXPONENT = /[eE][+-]?0*[1-9]\d+\s*[,\]}]/;
/** Zero to JavaScript without an exponent. */
const TINY = /\.0{300}/;

/** A quick look that may raise a false alarm, never miss one: whether an entry of this text may exceed a limit. */
export function mayExceedLimits(json: string): boolean {
  return json.length > 2 * JSON_LIMITS.elements || LONG_EXPONENT.test(json);
}

/** A quick look of the same kind: whether a number of this text may be too close to zero for a double. */
export function mayUnderflow(json: string): boolean {
  return LONG_EXPONENT.test(json) || TINY.test(json);
}

/** Whether a parsed value is nested beyond the limit. Level by level: no depth is too much for the look itself. */
export function isNestedTooDeep(value: object): boolean {
  let level: object[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === JSON_LIMITS.depth) return true;
    const next: object[] = [];
    for (const container of level) pushContainers(container, next);
    level = next;
  }
  return false;
}

function pushContainers(container: object, found: object[]): void {
  if (Array.isArray(container)) {
    for (const value of container) if (typeof value === 'object' && value !== null) found.push(value);
    return;
  }
  for (const name in container) {
    const value = (container as Readonly<Record<string, unknown>>)[name];
    if (typeof value === 'object' && value !== null) found.push(value);
  }
}

/**
 * The limit that a value's bytes exceed, members hidden by later ones of the same name included: PostgreSQL reads them too.
 * @param pieces the bytes one after the other, cut between values
 */
export function exceededLimit(...pieces: readonly Uint8Array[]): ExceededLimit | null {
  const elements: number[] = []; // of the containers open at present
  let expansion = 0;
  for (const json of pieces) {
    for (let at = 0; at < json.length; ) {
      const byte = json[at] as number;
      if (byte === QUOTE) at = stringEnd(json, at);
      else if (byte === MINUS || isDigit(byte)) {
        const end = numberEnd(json, at);
        expansion += gainedInFull(json, at, end);
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

/** Keeps count of the containers that are open, and of the elements of each. */
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

/** Whether a member of this name is a number other than zero that is zero as a double. */
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

/** How many characters longer a number is without its exponent, as PostgreSQL writes it. */
function gainedInFull(json: Uint8Array, start: number, end: number): number {
  let exponentAt = start;
  while (exponentAt < end && !isExponent(json[exponentAt] as number)) exponentAt += 1;
  if (exponentAt === end) return 0;
  const point = json.subarray(start, exponentAt).indexOf(POINT);
  const decimals = point === -1 ? 0 : exponentAt - start - point - 1;
  const exponent = Number(textOf(json, { start: exponentAt + 1, end }));
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
