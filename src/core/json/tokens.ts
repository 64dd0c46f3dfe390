/** The structural bytes of JSON. */
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
const { QUOTE, BACKSLASH } = JSON_BYTES;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const U = 0x75;
const SHORT_ESCAPES: ReadonlySet<number | undefined> = new Set(Buffer.from('"\\/bfnrt'));
const LITERALS: ReadonlyMap<number | undefined, Uint8Array> = new Map(
  ['true', 'false', 'null'].map((word) => [word.charCodeAt(0), Buffer.from(word)]),
);

/** Properties of strings and numbers that need special handling. */
export interface Marks {
  /** Whether there is an escape of U+0000 or of a surrogate. */
  hasSpecialEscapes: boolean;
  /** Whether there is a number with an exponent of two digits or more, or a very long one: doubles may not hold it. */
  hasUnusualNumbers: boolean;
}

/** Maximum length of a usual number: a shorter one without an exponent is not too close to zero for a double. */
const USUAL_NUMBER_BYTES = 300;

/** Returns the end of the string that starts at `at`. */
export function stringEnd(json: Uint8Array, at: number, marks?: Marks): number {
  let position = after(json, at, QUOTE);
  for (;;) {
    let byte = json[position];
    while (byte !== undefined && byte > QUOTE && byte !== BACKSLASH) byte = json[++position]; // most characters
    if (byte === QUOTE) return position + 1;
    if (byte === undefined || byte < 0x20) throw unexpected(json, position);
    position = byte === BACKSLASH ? escapeEnd(json, position + 1, marks) : position + 1;
  }
}

/** @param at the byte after the backslash */
function escapeEnd(json: Uint8Array, at: number, marks: Marks | undefined): number {
  if (SHORT_ESCAPES.has(json[at])) return at + 1;
  const end = after(json, at, U) + 4;
  let unit = 0;
  for (let digit = at + 1; digit < end; digit += 1) unit = 16 * unit + hexDigit(json, digit);
  if (marks !== undefined && (unit === 0 || (unit >= 0xd800 && unit <= 0xdfff))) marks.hasSpecialEscapes = true;
  return end;
}

/** Returns the end of the number or literal that starts at `at`. */
export function scalarEnd(json: Uint8Array, at: number, marks: Marks): number {
  const literal = LITERALS.get(json[at]);
  if (literal === undefined) {
    const end = numberEnd(json, at, marks);
    if (end - at > USUAL_NUMBER_BYTES) marks.hasUnusualNumbers = true;
    return end;
  }
  for (let index = 0; index < literal.length; index += 1) after(json, at + index, literal[index] as number);
  return at + literal.length;
}

function numberEnd(json: Uint8Array, at: number, marks: Marks): number {
  let end = json[at] === MINUS ? at + 1 : at;
  end = json[end] === ZERO ? end + 1 : digitsEnd(json, end);
  if (json[end] === POINT) end = digitsEnd(json, end + 1);
  if (((json[end] ?? 0) | 0x20) !== 0x65) return end; // neither e nor E
  const sign = json[end + 1];
  let exponent = sign === PLUS || sign === MINUS ? end + 2 : end + 1;
  end = digitsEnd(json, exponent);
  while (json[exponent] === ZERO) exponent += 1;
  if (end - exponent > 1) marks.hasUnusualNumbers = true;
  return end;
}

/** Requires at least one digit. */
function digitsEnd(json: Uint8Array, at: number): number {
  if (!isDigit(json[at])) throw unexpected(json, at);
  let end = at + 1;
  while (isDigit(json[end])) end += 1;
  return end;
}

export function after(json: Uint8Array, at: number, byte: number): number {
  if (json[at] !== byte) throw unexpected(json, at);
  return at + 1;
}

export function afterSpace(json: Uint8Array, at: number): number {
  let end = at;
  while (isSpace(json[end])) end += 1;
  return end;
}

/** Invalid JSON: a byte that is not allowed, or a text that ends too early. */
export class JsonSyntaxError extends SyntaxError {
  override readonly name = 'JsonSyntaxError';
  constructor(
    /** Index of the invalid byte; the length if the text ends too early. */
    readonly at: number,
    length: number,
  ) {
    super(at < length ? `not JSON at byte ${at}` : 'the JSON text ends too early');
  }
}

export function unexpected(json: Uint8Array, at: number): SyntaxError {
  return new JsonSyntaxError(at, json.length);
}

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isSpace(byte: number | undefined): boolean {
  if (byte === undefined || byte > 0x20) return false; // most bytes
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Returns the value of a hexadecimal digit. */
function hexDigit(json: Uint8Array, at: number): number {
  const byte = json[at];
  if (isDigit(byte)) return (byte as number) - ZERO;
  const letter = (byte ?? 0) | 0x20;
  if (letter < 0x61 || letter > 0x66) throw unexpected(json, at);
  return letter - 0x61 + 10;
}
