/**
 * Finds values in JSON bytes without changing them: a page's entries and a run's full result are passed on
 * as they were received, never re-serialised. The bytes must be valid JSON (`scan.ts` is the strict one).
 */

/** A value's bytes: from `start` up to but not including `end`. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** The bytes that JSON is built of. */
export const JSON_BYTES = {
  QUOTE: 0x22,
  BACKSLASH: 0x5c,
  COMMA: 0x2c,
  COLON: 0x3a,
  OPEN_ARRAY: 0x5b,
  CLOSE_ARRAY: 0x5d,
  OPEN_OBJECT: 0x7b,
  CLOSE_OBJECT: 0x7d,
} as const;
const { QUOTE, BACKSLASH, COMMA, COLON, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT } = JSON_BYTES;

/** The members of the object that the bytes are. Of equal keys the last, as in JSON.parse. */
export function memberRanges(json: Uint8Array): ReadonlyMap<string, Range> {
  return new Map(allMembers(json));
}

/** Every member of the object that the bytes are, in order, those of equal keys too. */
export function allMembers(json: Uint8Array): readonly (readonly [name: string, value: Range])[] {
  const members: [string, Range][] = [];
  let position = skipSpace(json, hasByteOrderMark(json) ? 3 : 0);
  if (json[position] !== OPEN_OBJECT) return members;
  position = skipSpace(json, position + 1);
  while (json[position] === QUOTE) {
    const afterKey = skipString(json, position);
    const key = JSON.parse(textOf(json, { start: position, end: afterKey })) as string;
    const start = skipSpace(json, expect(json, skipSpace(json, afterKey), COLON));
    const end = skipValue(json, start);
    members.push([key, { start, end }]);
    position = skipSpace(json, end);
    if (json[position] !== COMMA) break;
    position = skipSpace(json, position + 1);
  }
  return members;
}

/** The elements of the array that starts at `at`. */
export function elementRanges(json: Uint8Array, at = 0): readonly Range[] {
  const elements: Range[] = [];
  let position = skipSpace(json, at);
  if (json[position] !== OPEN_ARRAY) return elements;
  position = skipSpace(json, position + 1);
  while (position < json.length && json[position] !== CLOSE_ARRAY) {
    const end = skipValue(json, position);
    elements.push({ start: position, end });
    position = skipSpace(json, end);
    if (json[position] !== COMMA) break;
    position = skipSpace(json, position + 1);
  }
  return elements;
}

/** The bytes of a range as text; invalid UTF-8 becomes U+FFFD. */
export function textOf(json: Uint8Array, { start, end }: Range): string {
  return DECODER.decode(json.subarray(start, end));
}
/** One for all texts: each keeps memory outside of the heap, and the names in one body can be a million. */
const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });

/** Where the value that starts at `at` ends. Nesting is counted, not recursed into: any depth is fine. */
function skipValue(json: Uint8Array, at: number): number {
  let depth = 0;
  let position = at;
  while (position < json.length) {
    const byte = json[position];
    if (byte === QUOTE) position = skipString(json, position);
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      depth += 1;
      position += 1;
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) {
      depth -= 1;
      position += 1;
    } else if (depth === 0) return skipScalar(json, position);
    else position += 1;
    if (depth === 0) return position;
  }
  return position;
}

/** Where the string that starts at `at` ends. */
export function skipString(json: Uint8Array, at: number): number {
  let position = at + 1;
  while (position < json.length && json[position] !== QUOTE) position += json[position] === BACKSLASH ? 2 : 1;
  return position + 1;
}

function skipScalar(json: Uint8Array, at: number): number {
  let position = at;
  while (position < json.length && !isSpace(json[position]) && !isDelimiter(json[position])) position += 1;
  return position;
}

function skipSpace(json: Uint8Array, at: number): number {
  let position = at;
  while (isSpace(json[position])) position += 1;
  return position;
}

function expect(json: Uint8Array, at: number, byte: number): number {
  if (json[at] !== byte) throw new RangeError(`not JSON: byte ${at} is not what the grammar asks for`);
  return at + 1;
}

function hasByteOrderMark(json: Uint8Array): boolean {
  return json[0] === 0xef && json[1] === 0xbb && json[2] === 0xbf;
}

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function isDelimiter(byte: number | undefined): boolean {
  return byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT;
}
