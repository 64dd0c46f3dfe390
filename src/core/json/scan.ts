/** The bytes of a value: from `start` up to but not including `end`. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

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
const { QUOTE, BACKSLASH, COMMA, COLON, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT } = JSON_BYTES;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const U = 0x75;
const SHORT_ESCAPES: ReadonlySet<number | undefined> = new Set(Buffer.from('"\\/bfnrt'));
const LITERALS: ReadonlyMap<number | undefined, Uint8Array> = new Map(
  ['true', 'false', 'null'].map((word) => [word.charCodeAt(0), Buffer.from(word)]),
);

/** A member whose value is being scanned. */
interface OpenMember extends Pick<Member, 'name'> {
  readonly start: number;
  readonly valuesBefore: number;
  elements: number;
}

/** A member of an object, by its place in the text. */
export interface Member {
  /** Depth of its object: 1 for the outermost. */
  readonly depth: number;
  /** For a member of an element of an array in the outermost object: the index of that element. Else 0. */
  readonly element: number;
  /** The name as written, quotes included. */
  readonly name: Range;
  readonly value: Range;
  /** Number of values in its value, itself included. */
  readonly values: number;
  /** Number of elements or members of its value. */
  readonly elements: number;
}

/** What a scan finds out about a whole text. */
export interface JsonFacts {
  /** Number of values, containers and scalars. */
  readonly values: number;
  /** Depth of the deepest container; 0 if there is none. */
  readonly depth: number;
  /** Whether it has an escape of U+0000 or of a surrogate. */
  readonly hasSpecialEscapes: boolean;
  /** Whether it has a number with an exponent of two digits or more, or a very long one: doubles may not hold it. */
  readonly hasUnusualNumbers: boolean;
}

/** The facts that are found in strings and numbers. */
type Marks = { -readonly [Fact in 'hasSpecialEscapes' | 'hasUnusualNumbers']: JsonFacts[Fact] };

/** Maximum length of a usual number: a shorter one without an exponent is not too close to zero for a double. */
const USUAL_NUMBER_BYTES = 300;

/**
 * Scans JSON text of any size and depth once, as strictly as JSON.parse (except for UTF-8), without creating values. Each
 * level of nesting costs one bit.
 * @param depth the depth of the deepest objects whose members are reported
 * @param onMember called at the end of each of these members
 * @param from the start of the text
 * @throws JsonSyntaxError
 */
export function scanMembers(
  json: Uint8Array,
  depth: number,
  onMember: (member: Member) => void,
  from: number = 0,
): JsonFacts {
  const { facts, end } = scanValue(json, afterSpace(json, from), depth, onMember);
  const at = afterSpace(json, end);
  if (at < json.length) throw unexpected(json, at);
  return facts;
}

/** @throws JsonSyntaxError */
export function factsOf(json: Uint8Array): JsonFacts {
  return scanMembers(json, 0, () => {});
}

/** Returns the end of the value that starts at `at`. */
export function valueEnd(json: Uint8Array, at: number): number {
  return scanValue(json, at, 0, () => {}).end;
}

function scanValue(json: Uint8Array, start: number, depth: number, onMember: (member: Member) => void) {
  const open = createContainerStack();
  /** The members whose values are being scanned, by depth. */
  const current: (OpenMember | undefined)[] = [];
  const marks: Marks = { hasSpecialEscapes: false, hasUnusualNumbers: false };
  let values = 0;
  let deepest = 0;
  let at = start;

  const readName = () => {
    const start = at;
    const end = stringEnd(json, at, marks);
    at = afterSpace(json, after(json, afterSpace(json, end), COLON));
    if (open.depth <= depth)
      current[open.depth] = { name: { start, end }, start: at, valuesBefore: values, elements: 0 };
  };
  const valueEnded = () => {
    if (open.depth <= depth + 1) {
      const parent = current[open.depth - 1];
      if (parent !== undefined) parent.elements += 1;
      const member = current[open.depth];
      if (member !== undefined) {
        const { name, start, valuesBefore, elements } = member;
        current[open.depth] = undefined;
        const element = open.depth === 3 ? (current[1]?.elements ?? 0) : 0;
        onMember({
          depth: open.depth,
          element,
          name,
          value: { start, end: at },
          values: values - valuesBefore,
          elements,
        });
      }
    }
    if (open.depth > 0) at = afterSpace(json, at);
  };

  for (;;) {
    const first = json[at];
    values += 1;
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      open.push(first === OPEN_OBJECT);
      if (open.depth > deepest) deepest = open.depth;
      at = afterSpace(json, at + 1);
      if (json[at] !== open.closing) {
        if (first === OPEN_OBJECT) readName();
        continue;
      }
    } else {
      at = first === QUOTE ? stringEnd(json, at, marks) : scalarEnd(json, at, marks);
      valueEnded();
    }
    while (open.depth > 0 && json[at] === open.closing) {
      open.pop();
      at += 1;
      valueEnded();
    }
    if (open.depth === 0) return { facts: { values, depth: deepest, ...marks }, end: at };
    at = afterSpace(json, after(json, at, COMMA));
    if (open.closing === CLOSE_OBJECT) readName();
  }
}

/** Creates a stack of open containers, one bit each: deep nesting must not use up the memory. */
function createContainerStack() {
  let isObject = new Uint8Array(64);
  const stack = {
    depth: 0,
    /** The byte that closes the innermost container. */
    closing: 0,
    push: (object: boolean) => {
      const byte = stack.depth >> 3;
      if (byte === isObject.length) {
        const grown = new Uint8Array(2 * byte);
        grown.set(isObject);
        isObject = grown;
      }
      const bit = 1 << (stack.depth & 7);
      isObject[byte] = object ? (isObject[byte] as number) | bit : (isObject[byte] as number) & ~bit;
      stack.depth += 1;
      stack.closing = object ? CLOSE_OBJECT : CLOSE_ARRAY;
    },
    pop: () => {
      stack.depth -= 1;
      const innermost = stack.depth - 1;
      const object = innermost >= 0 && ((isObject[innermost >> 3] as number) & (1 << (innermost & 7))) !== 0;
      stack.closing = object ? CLOSE_OBJECT : CLOSE_ARRAY;
    },
  };
  return stack;
}

/** Returns the end of the string that starts at `at`. */
export function stringEnd(json: Uint8Array, at: number, marks?: Marks): number {
  let position = after(json, at, QUOTE);
  for (;;) {
    const byte = json[position];
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
function scalarEnd(json: Uint8Array, at: number, marks: Marks): number {
  const literal = LITERALS.get(json[at]);
  if (literal === undefined) {
    const end = numberEnd(json, at, marks);
    if (end - at > USUAL_NUMBER_BYTES) marks.hasUnusualNumbers = true;
    return end;
  }
  literal.forEach((byte, index) => {
    after(json, at + index, byte);
  });
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

function after(json: Uint8Array, at: number, byte: number): number {
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

function unexpected(json: Uint8Array, at: number): SyntaxError {
  return new JsonSyntaxError(at, json.length);
}

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isSpace(byte: number | undefined): boolean {
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
