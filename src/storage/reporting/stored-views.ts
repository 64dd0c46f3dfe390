import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import { relationsIn } from '../schema/relations-in.js';
import { type ReportColumn, type ReportView, type StoredView, viewKey } from './report-view.js';
import { hasTable } from './stored-rows.js';

/** Returns all typed views, outer ones first. */
export async function readReportViews({ db, tables }: StoreConnection): Promise<readonly StoredView[]> {
  const { rows } = await sql<StoredView>`
    SELECT view.id, view.name, document_type_slug AS slug, arrays, history_of IS NOT NULL AS history,
      stores_rows AS "storesRows", built_as AS "builtAs", built_at AS "builtAt", ${hasTable(tables)} AS "hasTable",
      COALESCE((SELECT relkind = 'v' FROM pg_class
        WHERE oid = to_regclass(format('%I.%I', ${tables.reportingSchema}::text, view.name))), false) AS exists,
      COALESCE(jsonb_agg(jsonb_build_object('name', field.name, 'path', field.path, 'type', field.type)
        ORDER BY field.position) FILTER (WHERE field.position IS NOT NULL), '[]') AS columns
    FROM ${tables.reportViews} AS view
    LEFT JOIN ${tables.reportColumns} AS field ON field.view_id = COALESCE(view.history_of, view.id)
    GROUP BY view.id ORDER BY view.id`.execute(db);
  return rows;
}

/** A typed view, or its table, that the connected role cannot change, and the statement that gives it to this role. */
export interface ForeignView {
  readonly name: string;
  readonly owner: string;
  readonly remedy: string;
}

export async function findForeignViews({ db, tables }: StoreConnection): Promise<readonly ForeignView[]> {
  const { rows } = await sql<ForeignView>`
    SELECT relname::text AS name, pg_get_userbyid(relowner)::text AS owner,
      format('ALTER %s %I.%I OWNER TO %I', CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
        ${tables.reportingSchema}::text, relname, current_user) AS remedy
    FROM pg_class WHERE oid IN ${relationsIn(tables.reportingSchema)} AND NOT pg_has_role(relowner, 'USAGE')
      AND EXISTS (SELECT FROM ${tables.reportViews} AS view WHERE relname IN (view.name, 'stored_' || view.id))
    ORDER BY relname`.execute(db);
  return rows;
}

/** Records whether a view is to keep its rows in a table. The next refresh builds it so. */
export async function setStoresRows({ db, tables }: StoreConnection, id: number, wanted: boolean): Promise<void> {
  await sql`UPDATE ${tables.reportViews} SET stores_rows = ${wanted} WHERE id = ${id}`.execute(db);
}

/** Stores new views and columns. Returns their numbers. */
export async function storeDecisions(
  connection: StoreConnection,
  known: readonly ReportView[],
  views: readonly ReportView[],
): Promise<{ readonly views: number; readonly columns: number }> {
  const before = new Map(known.map((view) => [viewKey(view), view.columns.length]));
  let columns = 0;
  for (const view of views) {
    const had = before.get(viewKey(view)) ?? 0;
    if (view.id === null) await storeView(connection, view);
    await storeColumns(connection, view.name, view.columns.slice(had), had);
    columns += view.columns.length - had;
  }
  return { views: views.length - known.length, columns };
}

async function storeView({ db, tables }: StoreConnection, { name, slug, arrays, history }: ReportView): Promise<void> {
  await sql`
    INSERT INTO ${tables.reportViews} (name, document_type_slug, arrays, history_of)
    VALUES (${name}, ${slug}, ${JSON.stringify(arrays)}, CASE WHEN ${history} THEN (
      SELECT id FROM ${tables.reportViews} WHERE document_type_slug = ${slug} AND arrays = '[]' AND history_of IS NULL) END)`.execute(
    db,
  );
}

async function storeColumns(
  { db, tables }: StoreConnection,
  view: string,
  columns: readonly ReportColumn[],
  behind: number,
): Promise<void> {
  if (columns.length === 0) return;
  await sql`
    INSERT INTO ${tables.reportColumns} (view_id, position, name, path, type)
    SELECT view.id, ${behind} + position, entry->>'name',
      ARRAY(SELECT key FROM jsonb_array_elements_text(entry->'path') WITH ORDINALITY AS step (key, place) ORDER BY place),
      entry->>'type'
    FROM ${tables.reportViews} AS view, jsonb_array_elements(${JSON.stringify(columns)}::jsonb) WITH ORDINALITY AS given (entry, position)
    WHERE view.name = ${view}`.execute(db);
}
