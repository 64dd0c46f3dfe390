import { INTERFACE_FIELDS, type InterfaceField } from '../run-fields.js';
import { nameOf } from './ranges.js';
import type { Range, Slice } from './scan.js';

/** Reads the JSON of a field of a run as it was sent. Returns null if the field is absent or null. */
export type ReadField = (field: InterfaceField) => Slice | null;

/** Positions of the fields of runs in a JSON text. */
export interface FieldPlaces {
  /** Records a member of run n. Other fields than those of the interface are ignored. */
  add(run: number, name: Range, value: Range): void;
  /** Returns the reader of the fields of run n. */
  fieldsOf(run: number): ReadField;
  /** Returns the fields that run n has more than once. */
  repeatedOf(run: number): readonly InterfaceField[];
}

/** Maximum number of runs in one text. The client refuses larger pages, since the places of millions would not fit into memory. */
export const MAX_RUNS = 2_000;
/** The start and the end of each field. A place of a value is never 0: its object begins before it. */
const NUMBERS_PER_RUN = 2 * INTERFACE_FIELDS.length;
/** Before the first field. A body may have millions of outer members, each with places of its own. */
const NO_PLACES = new Int32Array();
const NULL = 0x6e; // no other value begins with an n

export function createFieldPlaces(json: Uint8Array): FieldPlaces {
  let places: Int32Array = NO_PLACES;
  /** One bit for each field, by run. */
  const repeated = new Map<number, number>();
  return {
    add: (run, name, { start, end }) => {
      const index = fieldIndex(json, name);
      if (index === undefined || run >= MAX_RUNS) return;
      const at = run * NUMBERS_PER_RUN + 2 * index;
      if (at >= places.length) places = enlarged(places, at);
      if (places[at] !== 0) repeated.set(run, (repeated.get(run) ?? 0) | (1 << index));
      places[at] = start;
      places[at + 1] = end;
    },
    fieldsOf: (run) => (field) => {
      const at = run * NUMBERS_PER_RUN + 2 * (INDEX.get(field) as number);
      const start = places[at] ?? 0;
      return start === 0 || json[start] === NULL ? null : { json, start, end: places[at + 1] as number };
    },
    repeatedOf: (run) => {
      const bits = repeated.get(run) ?? 0;
      return bits === 0 ? [] : INTERFACE_FIELDS.filter((_, index) => bits & (1 << index));
    },
  };
}

function enlarged(places: Int32Array, at: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(Math.max(2 * places.length, at + NUMBERS_PER_RUN));
  larger.set(places);
  return larger;
}

const INDEX: ReadonlyMap<string, number> = new Map(INTERFACE_FIELDS.map((field, index) => [field, index]));
const NAMES: readonly Uint8Array[] = INTERFACE_FIELDS.map((field) => Buffer.from(`"${field}"`));

/** Returns the index of the field with this name; undefined if the interface has none. Most names need no decoding. */
function fieldIndex(json: Uint8Array, name: Range): number | undefined {
  for (let index = 0; index < NAMES.length; index += 1) if (isAt(json, name, NAMES[index] as Uint8Array)) return index;
  return INDEX.get(nameOf(json, name));
}

function isAt(json: Uint8Array, { start, end }: Range, bytes: Uint8Array): boolean {
  if (end - start !== bytes.length) return false;
  for (let at = 0; at < bytes.length; at += 1) if (json[start + at] !== bytes[at]) return false;
  return true;
}
