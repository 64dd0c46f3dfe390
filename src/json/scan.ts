import { isDigit, isSpace, JSON_BYTES, type Range } from './ranges.js';

const { QUOTE, BACKSLASH, COMMA, COLON, OPEN_ARRAY, OPEN_OBJECT, CLOSE_OBJECT } = JSON_BYTES;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const U = 0x75;
const SHORT_ESCAPES: ReadonlySet<number | undefined> = new Set(Buffer.from('"\\/bfnrt'));
const LITERALS: ReadonlyMap<number | undefined, Uint8Array> = new Map(
  ['true', 'false', 'null'].map((word) => [word.charCodeAt(0), Buffer.from(word)]),
);

/**
 * Goes once through JSON text of any size and depth, as strictly as JSON.parse does (but for UTF-8), and makes no values.
 * @param depth of the members that are told: 1 for those of the outermost object
 * @param onMember told of each: its name as it is written, quotes included, and where its value is
 * @throws SyntaxError where a byte does not fit, or the text ends too early
 */
export function scanMembers(json: Uint8Array, depth: number, onMember: (name: Uint8Array, value: Range) => void): void {
  /** The closing bytes of the containers that are open. */
  const open: number[] = [];
  let name: Uint8Array | null = null;
  let start = 0;
  let at = afterSpace(json, 0);

  const readName = () => {
    const end = stringEnd(json, at);
    const told = open.length === depth ? json.subarray(at, end) : null;
    at = afterSpace(json, after(json, afterSpace(json, end), COLON));
    if (told === null) return;
    name = told;
    start = at;
  };
  const valueEnded = () => {
    if (name !== null && open.length === depth) {
      onMember(name, { start, end: at });
      name = null;
    }
    at = afterSpace(json, at);
  };

  for (;;) {
    const first = json[at];
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      open.push(first + 2); // the closing byte is two further
      at = afterSpace(json, at + 1);
      if (json[at] !== open.at(-1)) {
        if (first === OPEN_OBJECT) readName();
        continue;
      }
    } else {
      at = first === QUOTE ? stringEnd(json, at) : scalarEnd(json, at);
      valueEnded();
    }
    while (open.length > 0 && json[at] === open.at(-1)) {
      open.pop();
      at += 1;
      valueEnded();
    }
    if (open.length === 0) break;
    at = afterSpace(json, after(json, at, COMMA));
    if (open.at(-1) === CLOSE_OBJECT) readName();
  }
  if (at < json.length) throw unexpected(json, at);
}

/** The first byte, counted from 0, that no JSON has there; the length where the text ends too early; null where it is JSON. */
export function findSyntaxError(json: Uint8Array): number | null {
  try {
    scanMembers(json, 0, () => {});
    return null;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.at;
    throw error;
  }
}

/** Where the string that starts at `at` ends. */
function stringEnd(json: Uint8Array, at: number): number {
  let position = after(json, at, QUOTE);
  for (;;) {
    const byte = json[position];
    if (byte === QUOTE) return position + 1;
    if (byte === undefined || byte < 0x20) throw unexpected(json, position);
    position = byte === BACKSLASH ? escapeEnd(json, position + 1) : position + 1;
  }
}

/** @param at behind the backslash */
function escapeEnd(json: Uint8Array, at: number): number {
  if (SHORT_ESCAPES.has(json[at])) return at + 1;
  const end = after(json, at, U) + 4;
  for (let digit = at + 1; digit < end; digit += 1) if (!isHexDigit(json[digit])) throw unexpected(json, digit);
  return end;
}

/** Where the number or literal that starts at `at` ends. */
function scalarEnd(json: Uint8Array, at: number): number {
  const literal = LITERALS.get(json[at]);
  if (literal === undefined) return numberEnd(json, at);
  literal.forEach((byte, index) => {
    after(json, at + index, byte);
  });
  return at + literal.length;
}

function numberEnd(json: Uint8Array, at: number): number {
  let end = json[at] === MINUS ? at + 1 : at;
  end = json[end] === ZERO ? end + 1 : digitsEnd(json, end);
  if (json[end] === POINT) end = digitsEnd(json, end + 1);
  if (((json[end] ?? 0) | 0x20) !== 0x65) return end; // neither e nor E
  const sign = json[end + 1];
  return digitsEnd(json, sign === PLUS || sign === MINUS ? end + 2 : end + 1);
}

/** At least one digit. */
function digitsEnd(json: Uint8Array, at: number): number {
  if (!isDigit(json[at])) throw unexpected(json, at);
  let end = at + 1;
  while (isDigit(json[end])) end += 1;
  return end;
}

function after(json: Uint8Array, at: number, byte: number): number {
  if (json[at] !== byte) throw unexpected(json, at);
  return at + 1;
}

function afterSpace(json: Uint8Array, at: number): number {
  let end = at;
  while (isSpace(json[end])) end += 1;
  return end;
}

class JsonSyntaxError extends SyntaxError {
  override readonly name = 'JsonSyntaxError';
  constructor(
    readonly at: number,
    length: number,
  ) {
    super(at < length ? `not JSON at byte ${at}` : 'the JSON text ends too early');
  }
}

function unexpected(json: Uint8Array, at: number): SyntaxError {
  return new JsonSyntaxError(at, json.length);
}

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const letter = byte | 0x20;
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66);
}
