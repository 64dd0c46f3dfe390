import { RawJson } from '../../../support/entries.js';
import { type Decimal, decimalText, jsonNumber } from './numbers.js';

/** A value of a document; its numbers are {@link RawJson}. */
export type Json = null | boolean | string | RawJson | readonly Json[] | { readonly [key: string]: Json };

/** A column of a typed view, as `scanfeed_reporting.columns` describes it. */
export interface Column {
  readonly name: string;
  readonly type: string;
  /** Keys from the row's document or element. */
  readonly path: readonly string[];
}

/** What a column has for a value: a number, or the text of another value; null: null. */
export type Cell = Decimal | string | null;

/** A row of a typed view, as it should be. */
export interface Row {
  readonly scanId: string;
  /** Positions of the elements, outermost first; empty: the row is a document. */
  readonly positions: readonly number[];
  readonly root: Json;
}

export const isObject = (value: unknown): value is Readonly<Record<string, Json>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof RawJson);

/** Nothing is lost if it is not shown. */
export function isEmpty(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

export function valueAt(root: Json | undefined, path: readonly string[]): Json | undefined {
  let value = root;
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** The rows of the elements of nested arrays. A single object counts as its array; what is empty is no row. */
export function rowsOf(document: Row, arrays: readonly (readonly string[])[]): readonly Row[] {
  const [path, ...inner] = arrays;
  if (path === undefined) return [document];
  const value = valueAt(document.root, path);
  const elements = Array.isArray(value) ? value : isObject(value) && !isEmpty(value) ? [value] : [];
  return elements.flatMap((root: Json, index) => {
    if (isEmpty(root) && !isObject(root)) return [];
    return rowsOf({ ...document, root, positions: [...document.positions, index + 1] }, inner);
  });
}

/** Reads a value as the type of a column. */
export function cellOf(value: Json | undefined, type: string): Cell {
  if (value === undefined || value === null) return null;
  if (type === 'jsonb') return 'any';
  if (type === 'numeric') return value instanceof RawJson ? jsonNumber(value.text) : null;
  if (type === 'boolean') return typeof value === 'boolean' ? String(value) : null;
  if (type === 'text') {
    if (value instanceof RawJson) return decimalText(jsonNumber(value.text));
    return typeof value === 'string' || typeof value === 'boolean' ? String(value) : null;
  }
  if (typeof value !== 'string') return null;
  if (type === 'date') return isDay(value) ? value : null;
  return microsecondsOf(value);
}

function isDay(text: string): boolean {
  const [, year = '', month = '', day = ''] = /^([0-9]{4})-([0-9]{2})-([0-9]{2})$/.exec(text) ?? [];
  const leap = Number(year) % 4 === 0 && (Number(year) % 100 !== 0 || Number(year) % 400 === 0);
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Number(month) - 1] ?? 0;
  return Number(year) > 0 && Number(day) >= 1 && Number(day) <= days;
}

/** Microseconds since 1970 of a time in the years 1000 to 9000 as it is written. */
function microsecondsOf(text: string): string | null {
  const parts = /^(.{10})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?(Z|([+-])([0-9]{2}):([0-9]{2}))$/.exec(
    text,
  );
  if (parts === null) return null;
  const [, day = '', hour, minute, second, fraction = '', , sign, east = '0', minutes = '0'] = parts;
  const year = Number(day.slice(0, 4));
  if (!isDay(day) || year < 1000 || year > 9000) return null;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  const offset = (Number(east) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1);
  const seconds = Date.parse(`${day}T${hour}:${minute}:${second}Z`) / 1000 - offset * 60;
  return String(BigInt(seconds) * 1_000_000n + BigInt(fraction.padEnd(6, '0')));
}

/** What a value is, whatever its type. */
type Shape = 'scalar' | 'object' | 'array';

function shapeOf(value: Json): Shape {
  if (Array.isArray(value)) return 'array';
  return isObject(value) ? 'object' : 'scalar';
}

/** How often each shape occurs at a place, by the keys that lead there; elements of an array are at the place of the array. */
export type Shapes = ReadonlyMap<string, Readonly<Record<Shape, number>>>;

export function shapesIn(documents: readonly Json[]): Shapes {
  const shapes = new Map<string, Record<Shape, number>>();
  const count = (object: Json, keys: readonly string[]): void => {
    if (!isObject(object)) return;
    for (const [key, value] of Object.entries(object)) {
      if (isEmpty(value)) continue;
      const place = JSON.stringify([...keys, key]);
      const counts = shapes.get(place) ?? { scalar: 0, object: 0, array: 0 };
      counts[shapeOf(value)] += 1;
      shapes.set(place, counts);
      for (const inner of Array.isArray(value) ? value : [value]) count(inner, [...keys, key]);
    }
  };
  for (const document of documents) count(document, []);
  return shapes;
}

/**
 * Whether the shape is an exception among the values of a place: its count has five binary digits less than that of all. Objects
 * count for arrays too, as single elements.
 */
function isException(shapes: Shapes, place: readonly string[], shape: Shape): boolean {
  const counts = shapes.get(JSON.stringify(place));
  if (counts === undefined || counts[shape] === 0) return false;
  const all = counts.scalar + counts.object + counts.array;
  const having = shape === 'array' ? counts.array + counts.object : counts[shape];
  return having.toString(2).length + 5 <= all.toString(2).length;
}

/** A typed view. */
export interface View {
  readonly name: string;
  readonly arrays: readonly (readonly string[])[];
  readonly columns: readonly Column[];
}

/**
 * The columns of a row that are null, and the views of its arrays that have no rows, although it has another value at their place
 * or around it. A column whose shape is an exception there misses no values of other shapes.
 */
export function unfitNames(root: Json, view: View, views: readonly View[], shapes: Shapes): readonly string[] {
  const outer = view.arrays.flat();
  const misses = (path: readonly string[], shape: Shape, holds: (value: Json) => boolean) => {
    const value = valueAt(root, path);
    if (value === undefined || isEmpty(value) || holds(value)) return false;
    return shapeOf(value) === shape || !isException(shapes, [...outer, ...path], shape);
  };
  const lacksObject = (path: readonly string[]) =>
    path.some((_, depth) => depth > 0 && misses(path.slice(0, depth), 'object', isObject));
  const columns = view.columns.filter(({ path, type }, place) => {
    if (lacksObject(path)) return true;
    const isSame = (other: Column) => other.type !== 'jsonb' && JSON.stringify(other.path) === JSON.stringify(path);
    if (type === 'jsonb' || view.columns.findIndex(isSame) !== place) return false;
    return misses(path, 'scalar', (value) => cellOf(value, type) !== null);
  });
  const inner = views.filter(
    ({ arrays }) =>
      arrays.length === view.arrays.length + 1 && JSON.stringify(arrays.slice(0, -1)) === JSON.stringify(view.arrays),
  );
  const arrays = inner.filter((each) => {
    const path = each.arrays.at(-1) ?? [];
    return lacksObject(path) || misses(path, 'array', (value) => shapeOf(value) !== 'scalar');
  });
  return [...columns, ...arrays].map(({ name }) => name).sort();
}
