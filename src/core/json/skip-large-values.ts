import { getHeapStatistics } from 'node:v8';
import { textOf } from './ranges.js';
import { JSON_BYTES, type Member, type Range, scanMembers } from './scan.js';

/** From this size on a body is parsed lightly: as parsed values it would take some ten times its bytes. */
export const SKIPPING_FROM_BYTES = 1024 * 1024;
/** Longer values are left empty. */
const HEAVY_BYTES = 4096;
/** Values that consist of more values are left empty, too: a list of small numbers has many in few bytes. */
const HEAVY_VALUES = 512;
/** Maximum length of a name that is compared, bytes: that of the longest name kept if all its characters are escaped. */
const LONGEST_NAME_BYTES = 128;

/**
 * Memory that a parsed value takes at most, bytes, its place in its container and its key included. Measured as the growth
 * of the resident memory (VmHWM) by JSON.parse of 200,000 values of one kind, with the image's semi-spaces, on Node 20 and
 * 24: numbers 18, `[]` 104, `{}` 119, nested arrays 123, objects whose keys are all different 115, one object of different
 * keys 161, one object of the same key 187.
 */
const VALUE_BYTES = 192;
/** Maximum memory that a byte of JSON takes in addition: two bytes a character, as text and again in its strings. */
const TEXT_BYTES = 4;
/**
 * Memory that one answer may take as values, bytes: a quarter of the heap. In the image, in 256 MiB, that is 35 MiB, or some
 * 180,000 values. A page of 200 entries has 110,000 at most once it is parsed lightly.
 */
const MEMORY_BYTES = getHeapStatistics().heap_size_limit / 4;

/** The JSON would take more memory as values than there is. */
export class TooManyValues extends Error {
  override readonly name = 'TooManyValues';
  constructor(
    readonly values: number,
    /** Of the JSON that holds them. */
    readonly bytes: number,
    /** Elements of the member that {@link SkippableValues} names; 0 where it names none. */
    readonly entries: number,
  ) {
    super(`${values} JSON values of ${bytes} bytes`);
  }
}

/** Which values are not needed to steer by. */
export interface SkippableValues {
  /** Of the deepest objects whose members may be left empty: 1 is the outermost object. */
  readonly depth: number;
  /** Name of the member of the outermost object that holds the entries. */
  readonly entries?: string;
  /** Whether a long value may be left empty. Of objects above the deepest only strings are. */
  readonly isSkippable: (member: { readonly depth: number; readonly name: string; readonly bytes: number }) => boolean;
}

export interface Parsed {
  readonly value: unknown;
  /** Long values were left empty. */
  readonly valuesSkipped: boolean;
}

/**
 * What JSON.parse gives, except that of a large text long members hold an empty value of their kind (`{}`, `[]`, `""`).
 * The whole text is checked all the same, and its values are counted before any of them is made.
 * @param json UTF-8 without a byte order mark; where it is not valid UTF-8, strings come with U+FFFD
 * @param skippable undefined: every value is wanted
 * @throws SyntaxError, TooManyValues
 */
export function parseSkippingLargeValues(
  json: Uint8Array,
  skippable: SkippableValues | undefined,
  memoryBytes: number = MEMORY_BYTES,
): Parsed {
  // A value takes at least two bytes. JSON that fits even in the worst case need not be scanned.
  const worst = memoryTaken(json.length / 2, json.length);
  if (json.length < SKIPPING_FROM_BYTES || (skippable === undefined && worst <= memoryBytes)) {
    return { value: parse(json), valuesSkipped: false };
  }
  const heavy: Member[] = [];
  let entries = 0;
  const all = scanMembers(json, skippable?.depth ?? 0, (member) => {
    if (skippable === undefined) return;
    const { entries: wanted } = skippable;
    if (wanted !== undefined && member.depth === 1 && nameOf(json, member) === wanted) entries = member.elements;
    if (isHeavy(json, member, skippable)) heavy.push(member);
  });
  const values = heavy.reduce((left, member) => left - member.values + 1, all);
  const bytes = heavy.reduce((left, { value }) => left - (value.end - value.start), json.length);
  if (memoryTaken(values, bytes) > memoryBytes) throw new TooManyValues(values, bytes, entries);
  return { value: parse(without(json, heavy)), valuesSkipped: heavy.length > 0 };
}

function memoryTaken(values: number, bytes: number): number {
  return values * VALUE_BYTES + bytes * TEXT_BYTES;
}

function isHeavy(json: Uint8Array, member: Member, skippable: SkippableValues): boolean {
  const { depth, value, values } = member;
  const bytes = value.end - value.start;
  const first = json[value.start] as number;
  if ((bytes <= HEAVY_BYTES && values <= HEAVY_VALUES) || !EMPTY.has(first)) return false;
  if (depth < skippable.depth && first !== JSON_BYTES.QUOTE) return false; // members inside are looked at themselves
  return skippable.isSkippable({ depth, name: nameOf(json, member), bytes });
}

/** Returns the name of a member; an empty text if it is too long to be a known name. */
function nameOf(json: Uint8Array, { name }: Member): string {
  return name.end - name.start <= LONGEST_NAME_BYTES ? (JSON.parse(textOf(json, name)) as string) : '';
}

/** By the first byte of a value. An empty number there is none. */
const EMPTY: ReadonlyMap<number, Uint8Array> = new Map(
  ['{}', '[]', '""'].map((empty) => [empty.charCodeAt(0), Buffer.from(empty)]),
);

function without(json: Uint8Array, heavy: readonly { readonly value: Range }[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const { value } of heavy) {
    parts.push(json.subarray(from, value.start), EMPTY.get(json[value.start] as number) ?? new Uint8Array());
    from = value.end;
  }
  return Buffer.concat([...parts, json.subarray(from)]);
}

function parse(json: Uint8Array): unknown {
  return JSON.parse(textOf(json, { start: 0, end: json.length }));
}
