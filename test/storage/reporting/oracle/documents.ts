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

/** The columns that are null although the document has a value of another type there: the first column decides the type. */
export function unfitColumns(root: Json, columns: readonly Column[]): readonly string[] {
  const decided = new Map<string, { readonly path: readonly string[]; readonly field?: Column; names: string[] }>();
  for (const column of columns) {
    for (let depth = 1; depth <= column.path.length; depth += 1) {
      const path = column.path.slice(0, depth);
      const known = decided.get(JSON.stringify(path));
      if (known === undefined) {
        const own = { path, names: [column.name], ...(depth === column.path.length && { field: column }) };
        decided.set(JSON.stringify(path), own);
      } else if (known.field === undefined && depth < column.path.length) known.names.push(column.name);
    }
  }
  const unfit: string[] = [];
  for (const { path, field, names } of decided.values()) {
    const value = valueAt(root, path);
    if (isEmpty(value)) continue;
    if (field === undefined ? !isObject(value) : cellOf(value, field.type) === null) unfit.push(...names);
  }
  return unfit.sort();
}
