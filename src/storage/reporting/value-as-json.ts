import pg from 'pg';

const { BOOL, INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC, OID, TEXT, JSON: JSON_TEXT, JSONB } = pg.types.builtins;
const NUMBERS: ReadonlySet<number> = new Set([INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC, OID]);
const JSON_TYPES: ReadonlySet<number> = new Set([JSON_TEXT, JSONB]);
/** OID of `text[]`. All arrays are written in the same form. */
const TEXT_ARRAY = 1009;
/** Types of the elements by the OID of the array. Elements of other arrays are strings, like their values. */
const ELEMENTS: ReadonlyMap<number, number> = new Map<number, number>([
  [199, JSON_TEXT],
  [1000, BOOL],
  [1005, INT2],
  [1007, INT4],
  [TEXT_ARRAY, TEXT],
  [1016, INT8],
  [1021, FLOAT4],
  [1022, FLOAT8],
  [1231, NUMERIC],
  [3807, JSONB],
]);

/** Returns a value that PostgreSQL wrote as JSON, with every digit of a number. */
export function valueAsJson(value: string | null, type: number): string {
  if (value === null) return 'null';
  if (JSON_TYPES.has(type)) return value;
  if (type === BOOL) return value === 't' ? 'true' : 'false';
  // NaN and Infinity are not JSON.
  if (NUMBERS.has(type) && /^-?\d/.test(value)) return value;
  const element = ELEMENTS.get(type);
  if (element !== undefined) return arrayAsJson(pg.types.getTypeParser(TEXT_ARRAY as never)(value), element);
  return JSON.stringify(value);
}

type ArrayValue = readonly (string | null | ArrayValue)[];

function arrayAsJson(values: ArrayValue, type: number): string {
  const elements = values.map((value) =>
    Array.isArray(value) ? arrayAsJson(value, type) : valueAsJson(value as string | null, type),
  );
  return `[${elements.join(',')}]`;
}

/** Returns whether values of the type are right-aligned in a table. */
export function isNumber(type: number): boolean {
  return NUMBERS.has(type);
}
