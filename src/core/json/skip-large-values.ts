import { heapBytes } from '../heap-bytes.js';
import { ANSWER_FIELDS } from '../run-fields.js';
import { createFieldPlaces, type FieldPlaces } from './field-places.js';
import { nameOf, textOf } from './ranges.js';
import { type JsonFacts, type Member, type Range, scanMembers } from './scan.js';
import { JSON_BYTES } from './tokens.js';

/** Maximum size of values that are not skipped, bytes. A container takes much longer to parse than a string. */
const KEPT_BYTES = { string: 4096, container: 64 };

/**
 * Maximum memory of a parsed value, bytes, including its key and its slot in the container. Measured as the growth of the
 * resident memory (VmHWM) during JSON.parse of 200,000 values of one kind, with the image's semi-spaces, on Node 20 and
 * 24: numbers 18, `[]` 104, `{}` 119, nested arrays 123, objects whose keys are all different 115, one object of different
 * keys 161, one object of the same key 187.
 */
const VALUE_BYTES = 192;
/** Maximum additional memory per byte of JSON: two bytes per character, once as text and once in the parsed strings. */
const TEXT_BYTES = 4;
/**
 * Maximum memory of one parsed response, bytes: a quarter of the heap. In the image with 256 MiB that is 35 MiB, or about
 * 180,000 values.
 */
const MEMORY_BYTES = heapBytes() / 4;

/** The parsed JSON would exceed the memory limit. */
export class TooManyValues extends Error {
  override readonly name = 'TooManyValues';
  constructor(
    readonly values: number,
    /** Size of the JSON that contains them. */
    readonly bytes: number,
  ) {
    super(`${values} JSON values of ${bytes} bytes`);
  }
}

/** A response has a field twice: whichever value is taken, the other one would be lost. */
export class RepeatedField extends Error {
  override readonly name = 'RepeatedField';
  constructor(readonly field: string) {
    super(`the field ${field} is repeated`);
  }
}

/** The values that no decision depends on. */
export interface SkippableValues {
  /** Depth of the runs, the deepest objects whose members can be skipped: 1 is the outermost object. */
  readonly depth: number;
  /** Name of the member of the outermost object that contains the runs; undefined: the outermost object is a run. */
  readonly entries?: string;
  /** Returns whether a large value can be skipped. Above the deepest objects only strings are skipped. */
  readonly isSkippable: (member: { readonly depth: number; readonly name: string; readonly bytes: number }) => boolean;
}

export interface Parsed {
  readonly value: unknown;
  /** Describes the whole text, with the values that were skipped. */
  readonly facts: JsonFacts;
  /** The places of the fields of all runs. */
  readonly places: FieldPlaces;
}

/**
 * Parses JSON like JSON.parse, except that large values are replaced by an empty value of their kind (`{}`, `[]`, `""`):
 * scanning a value takes a third of the time of parsing it, and no memory. Checks the syntax of the whole text and counts its
 * values before it creates any of them.
 * @param json UTF-8 without a byte order mark; invalid UTF-8 becomes U+FFFD
 * @param skippable undefined: no value is skipped
 * @throws JsonSyntaxError, TooManyValues, RepeatedField
 */
export function parseSkippingLargeValues(
  json: Uint8Array,
  skippable?: SkippableValues,
  memoryBytes: number = MEMORY_BYTES,
): Parsed {
  const large: (Range & { readonly values: number })[] = [];
  let places = createFieldPlaces(json);
  let current = places;
  const found = new Set<string>();
  const repeated = new Set<string>();
  const facts = scanMembers(json, skippable?.depth ?? 1, (member) => {
    if (member.depth === 1) {
      const name = nameOf(json, member.name);
      if (ANSWER_FIELDS.has(name)) (found.has(name) ? repeated : found).add(name);
    }
    if (skippable === undefined) return;
    const { entries: name } = skippable;
    if (member.depth === skippable.depth) current.add(member.element, member.name, member.value);
    else if (member.depth === 1) {
      if (nameOf(json, member.name) === name) places = current;
      current = createFieldPlaces(json);
    }
    if (isSkipped(json, member, skippable)) large.push({ ...member.value, values: member.values });
  });
  const values = large.reduce((left, member) => left - member.values + 1, facts.values);
  const bytes = large.reduce((left, { start, end }) => left - (end - start), json.length);
  if (values * VALUE_BYTES + bytes * TEXT_BYTES > memoryBytes) throw new TooManyValues(values, bytes);
  for (const field of repeated) throw new RepeatedField(field);
  return { value: JSON.parse(textOf(without(json, large))), facts, places };
}

function isSkipped(json: Uint8Array, member: Member, skippable: SkippableValues): boolean {
  const { depth, value } = member;
  const bytes = value.end - value.start;
  const first = json[value.start] as number;
  const kept = first === JSON_BYTES.QUOTE ? KEPT_BYTES.string : KEPT_BYTES.container;
  if (bytes <= kept || !EMPTY.has(first)) return false;
  if (depth < skippable.depth && first !== JSON_BYTES.QUOTE) return false; // its members are checked individually
  return skippable.isSkippable({ depth, name: nameOf(json, member.name), bytes });
}

/** Empty values by the first byte of a value. There is no empty number. */
const EMPTY: ReadonlyMap<number, Uint8Array> = new Map(
  ['{}', '[]', '""'].map((empty) => [empty.charCodeAt(0), Buffer.from(empty)]),
);

function without(json: Uint8Array, large: readonly Range[]): Uint8Array {
  if (large.length === 0) return json;
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const { start, end } of large) {
    parts.push(json.subarray(from, start), EMPTY.get(json[start] as number) ?? new Uint8Array());
    from = end;
  }
  return Buffer.concat([...parts, json.subarray(from)]);
}
