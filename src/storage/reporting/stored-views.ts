import { type Kysely, sql } from 'kysely';
import type { Tables } from '../schema.js';
import { type ReportColumn, type ReportView, viewKey } from './report-view.js';

/** All typed views as they were decided, outer ones first. */
export async function readReportViews(db: Kysely<unknown>, tables: Tables): Promise<readonly ReportView[]> {
  const { rows } = await sql<ReportView>`
    SELECT view.id, view.name, document_type_slug AS slug, arrays,
      COALESCE(jsonb_agg(jsonb_build_object('name', field.name, 'path', field.path, 'type', field.type)
        ORDER BY field.position) FILTER (WHERE field.position IS NOT NULL), '[]') AS columns
    FROM ${tables.reportViews} AS view LEFT JOIN ${tables.reportColumns} AS field ON field.view_id = view.id
    GROUP BY view.id ORDER BY view.id`.execute(db);
  return rows;
}

/** A typed view as it is listed. */
export interface ListedView {
  readonly name: string;
  readonly slug: string;
  readonly arrays: readonly (readonly string[])[];
  readonly fields: number;
  /** Null: not built yet. */
  readonly builtAt: Date | null;
}

/** By document type, outer views first. */
export async function listReportViews(db: Kysely<unknown>, tables: Tables): Promise<readonly ListedView[]> {
  const { rows } = await sql<ListedView>`
    SELECT name, document_type_slug AS slug, arrays, built_at AS "builtAt",
      (SELECT count(*)::int FROM ${tables.reportColumns} WHERE view_id = view.id) AS fields
    FROM ${tables.reportViews} AS view ORDER BY document_type_slug, jsonb_array_length(arrays), view.id`.execute(db);
  return rows;
}

/** Stores what was decided beyond what was known; how many views and columns that is. */
export async function storeDecisions(
  tx: Kysely<unknown>,
  tables: Tables,
  known: readonly ReportView[],
  views: readonly ReportView[],
): Promise<{ readonly views: number; readonly columns: number }> {
  const before = new Map(known.map((view) => [viewKey(view), view.columns.length]));
  let columns = 0;
  for (const view of views) {
    const had = before.get(viewKey(view)) ?? 0;
    const id = view.id ?? (await storeView(tx, tables, view));
    await storeColumns(tx, tables, id, view.columns.slice(had), had);
    columns += view.columns.length - had;
  }
  return { views: views.length - known.length, columns };
}

async function storeView(tx: Kysely<unknown>, tables: Tables, { name, slug, arrays }: ReportView): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    INSERT INTO ${tables.reportViews} (name, document_type_slug, arrays)
    VALUES (${name}, ${slug}, ${JSON.stringify(arrays)}::jsonb) RETURNING id`.execute(tx);
  return rows[0]?.id ?? 0;
}

async function storeColumns(
  tx: Kysely<unknown>,
  tables: Tables,
  view: number,
  columns: readonly ReportColumn[],
  behind: number,
): Promise<void> {
  if (columns.length === 0) return;
  await sql`
    INSERT INTO ${tables.reportColumns} (view_id, position, name, path, type)
    SELECT ${view}, ${behind} + position, entry->>'name',
      ARRAY(SELECT key FROM jsonb_array_elements_text(entry->'path') WITH ORDINALITY AS step (key, place) ORDER BY place),
      entry->>'type'
    FROM jsonb_array_elements(${JSON.stringify(columns)}::jsonb) WITH ORDINALITY AS given (entry, position)`.execute(
    tx,
  );
}
