import { after, afterSpace, JSON_BYTES, type Marks, scalarEnd, stringEnd, unexpected } from './tokens.js';

/** The bytes of a value: from `start` up to but not including `end`. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** A value in a JSON text. Cheaper than a subarray: a page has thousands of them. */
export interface Slice extends Range {
  readonly json: Uint8Array;
}

const { QUOTE, COMMA, COLON, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT } = JSON_BYTES;

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
}

/** The member that a scan reports: always the same objects, since a page has thousands of members. */
type ReportedMember = Writable<Omit<Member, 'name' | 'value'>> & Record<'name' | 'value', Writable<Range>>;
type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Facts that a scan collects about a whole text. */
export interface JsonFacts extends Readonly<Marks> {
  /** Number of values, containers and scalars. */
  readonly values: number;
  /** Depth of the deepest container; 0 if there is none. */
  readonly depth: number;
}

/** Position and findings of a running scan. */
interface Scan extends Marks {
  readonly json: Uint8Array;
  at: number;
  values: number;
  depth: number;
  /** Whether each open container inside of a member's value is an object, one bit each: deep nesting must not use up the memory. */
  isObject: Uint8Array<ArrayBuffer>;
}

/**
 * Scans JSON text of any size and depth once, as strictly as JSON.parse (except for UTF-8), without creating values. Each
 * level of nesting costs one bit.
 * @param depth the depth of the deepest objects whose members are reported
 * @param onMember called at the end of each of these members. What it gets changes afterwards: copy what is kept.
 * @throws JsonSyntaxError
 */
export function scanMembers(json: Uint8Array, depth: number, onMember: (member: Member) => void): JsonFacts {
  const scan = beginScan(json, afterSpace(json, 0));
  const member = {
    depth: 0,
    element: 0,
    name: { start: 0, end: 0 },
    value: { start: 0, end: 0 },
    values: 0,
  };
  scanOuterValue(scan, { level: 0, depth, member, onMember }, 0);
  const at = afterSpace(json, scan.at);
  if (at < json.length) throw unexpected(json, at);
  const { values, depth: deepest, hasSpecialEscapes, hasUnusualNumbers } = scan;
  return { values, depth: deepest, hasSpecialEscapes, hasUnusualNumbers };
}

/** Returns the end of the value that starts at `at`. */
export function valueEnd(json: Uint8Array, at: number): number {
  const scan = beginScan(json, at);
  scanInnerValue(scan, 0);
  return scan.at;
}

function beginScan(json: Uint8Array, at: number): Scan {
  const isObject = new Uint8Array(8);
  return { json, at, values: 0, depth: 0, isObject, hasSpecialEscapes: false, hasUnusualNumbers: false };
}

interface Outer {
  /** Number of containers around the value. */
  readonly level: number;
  readonly depth: number;
  readonly member: ReportedMember;
  readonly onMember: (member: Member) => void;
}

/**
 * Scans a value whose members are reported, up to the depth; that many calls are nested.
 * @param element as in {@link Member}
 */
function scanOuterValue(scan: Scan, outer: Outer, element: number): void {
  const { json } = scan;
  const first = json[scan.at];
  const isObject = first === OPEN_OBJECT;
  if (outer.level >= outer.depth || !(isObject || first === OPEN_ARRAY)) {
    scanInnerValue(scan, outer.level);
    return;
  }
  const closing = isObject ? CLOSE_OBJECT : CLOSE_ARRAY;
  const inner = { ...outer, level: outer.level + 1 };
  scan.values += 1;
  scan.depth = Math.max(scan.depth, inner.level);
  scan.at = afterSpace(json, scan.at + 1);
  for (let count = 0; json[scan.at] !== closing; count += 1) {
    if (count > 0) scan.at = afterSpace(json, after(json, scan.at, COMMA));
    if (isObject) scanMember(scan, inner, element);
    else scanOuterValue(scan, inner, outer.level === 1 ? count : element);
    scan.at = afterSpace(json, scan.at);
  }
  scan.at += 1;
}

function scanMember(scan: Scan, outer: Outer, element: number): void {
  const { json, at, values } = scan;
  const nameEnd = stringEnd(json, at, scan);
  const start = afterColon(json, nameEnd);
  scan.at = start;
  scanOuterValue(scan, outer, element);
  const { member } = outer;
  member.depth = outer.level;
  member.element = element;
  member.name.start = at;
  member.name.end = nameEnd;
  member.value.start = start;
  member.value.end = scan.at;
  member.values = scan.values - values;
  outer.onMember(member);
}

/**
 * Scans a value of any depth without nested calls.
 * @param level number of containers around it
 */
function scanInnerValue(scan: Scan, level: number): void {
  const { json } = scan;
  let { at, isObject } = scan;
  let values = 0;
  let deepest = 0;
  let open = 0;
  /** The byte that closes the innermost container. */
  let closing = 0;
  for (;;) {
    const first = json[at];
    values += 1;
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      if (open >> 3 === isObject.length) isObject = scan.isObject = enlarged(isObject);
      const bit = 1 << (open & 7);
      const byte = isObject[open >> 3] as number;
      isObject[open >> 3] = first === OPEN_OBJECT ? byte | bit : byte & ~bit;
      open += 1;
      if (open > deepest) deepest = open;
      closing = first === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY;
      at = afterSpace(json, at + 1);
      if (json[at] !== closing) {
        if (first === OPEN_OBJECT) at = afterColon(json, stringEnd(json, at, scan));
        continue;
      }
    } else {
      at = first === QUOTE ? stringEnd(json, at, scan) : scalarEnd(json, at, scan);
      if (open > 0) at = afterSpace(json, at);
    }
    while (open > 0 && json[at] === closing) {
      open -= 1;
      const outer = open - 1;
      const inObject = open > 0 && ((isObject[outer >> 3] as number) & (1 << (outer & 7))) !== 0;
      closing = inObject ? CLOSE_OBJECT : CLOSE_ARRAY;
      at += 1;
      if (open > 0) at = afterSpace(json, at);
    }
    if (open === 0) break;
    at = afterSpace(json, after(json, at, COMMA));
    if (closing === CLOSE_OBJECT) at = afterColon(json, stringEnd(json, at, scan));
  }
  scan.at = at;
  scan.values += values;
  scan.depth = Math.max(scan.depth, level + deepest);
}

function enlarged(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(2 * bytes.length);
  larger.set(bytes);
  return larger;
}

/** Returns the start of the value after a name. */
function afterColon(json: Uint8Array, nameEnd: number): number {
  return afterSpace(json, after(json, afterSpace(json, nameEnd), COLON));
}
