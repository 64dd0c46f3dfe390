import { sql } from 'kysely';
import { groupBy } from '../../core/group-by.js';
import type { StoreConnection } from '../connection/store-connection.js';
import type { SeenField, SeenKind } from './find-fields.js';
import { pathKey, type ReportView } from './report-view.js';

export type Shape = 'scalar' | 'object' | 'array';

/**
 * How often the values of a document type were found with each shape, by the keys that lead to them. Empty texts, objects and arrays
 * do not count.
 */
export type ShapeCounts = Readonly<Record<string, Readonly<Record<string, number>>>>;

const SHAPES: Readonly<Partial<Record<SeenKind, Shape>>> = {
  object: 'object',
  json: 'object',
  array: 'array',
  objects: 'array',
};

/** Returns a key that identifies a shape of the values to which these keys lead. */
export function shapeKey(keys: string, shape: string): string {
  return `${shape} ${keys}`;
}

/**
 * Returns the shapes that few of the values at their place have: always if fewer than 1 in 32 do, never from 1 in 16. An object counts
 * for arrays too, since it is a row of the array's view. In between, the numbers of binary digits decide, so that a field
 * makes views be built again a few dozen times at most, however many documents there are, and in whatever order they arrive. Pure.
 */
function rareShapes(counts: ShapeCounts): ReadonlySet<string> {
  const rare = Object.entries(counts).flatMap(([keys, found]) => {
    const all = Object.values(found).reduce((sum, count) => sum + count, 0);
    const having = (shape: string) => (found[shape] ?? 0) + (shape === 'array' ? (found.object ?? 0) : 0);
    const shapes = Object.keys(found).filter((shape) => binaryDigits(having(shape)) + 5 <= binaryDigits(all));
    return shapes.map((shape) => shapeKey(keys, shape));
  });
  return new Set(rare);
}

function binaryDigits(count: number): number {
  return count.toString(2).length;
}

/**
 * Adds values that were found. Only fields with columns and arrays with views count: documents may have any number of different
 * keys. Pure.
 */
function addShapes(before: ShapeCounts, found: readonly SeenField[], views: readonly ReportView[]): ShapeCounts {
  const shown = new Set(views.flatMap(placesOf));
  const counts = { ...before };
  for (const { arrays, path, kind, count } of found) {
    const place = pathKey([...arrays.flat(), ...path]);
    if (kind === 'row' || !shown.has(place)) continue;
    const shape = SHAPES[kind] ?? 'scalar';
    counts[place] = { ...counts[place], [shape]: (counts[place]?.[shape] ?? 0) + count };
  }
  return counts;
}

/** Returns the keys of the fields of a view and of its array, those of the objects around them included. */
function placesOf({ arrays, columns }: ReportView): readonly string[] {
  const outer = arrays.flat();
  const fields = [outer, ...columns.map(({ path }) => [...outer, ...path])];
  return fields.flatMap((keys) => keys.map((_, depth) => pathKey(keys.slice(0, depth + 1))));
}

interface Row {
  readonly slug: string;
  readonly counts: ShapeCounts;
}

/** Returns the shapes that few values have, by document type. */
export async function readRareShapes({
  db,
  tables,
}: StoreConnection): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const { rows } = await sql<Row>`SELECT document_type_slug AS slug, counts FROM ${tables.reportShapes}`.execute(db);
  return new Map(rows.map(({ slug, counts }) => [slug, rareShapes(counts)]));
}

/** Adds values that were found in documents. */
export async function storeShapes(
  { db, tables }: StoreConnection,
  found: readonly SeenField[],
  views: readonly ReportView[],
): Promise<void> {
  const foundOf = groupBy(found, ({ slug }) => slug);
  const viewsOf = groupBy(views, ({ slug }) => slug);
  const { rows } = await sql<Row>`
    SELECT document_type_slug AS slug, counts FROM ${tables.reportShapes}
    WHERE document_type_slug = ANY (${[...foundOf.keys()]}::text[])`.execute(db);
  const before = new Map(rows.map((row) => [row.slug, row.counts]));
  const counts = [...foundOf].map(([slug, values]) => [
    slug,
    addShapes(before.get(slug) ?? {}, values, viewsOf.get(slug) ?? []),
  ]);
  await sql`
    INSERT INTO ${tables.reportShapes} (document_type_slug, counts)
    SELECT key, value FROM jsonb_each(${JSON.stringify(Object.fromEntries(counts))}::jsonb)
    ON CONFLICT (document_type_slug) DO UPDATE SET counts = excluded.counts`.execute(db);
}
