import { sql } from 'kysely';
import { type StoreConnection, withoutJit } from '../connection/store-connection.js';
import { BATCH } from './find-fields.js';
import { type ReportView, viewKey } from './report-view.js';
import { viewDefinition, viewsWithin } from './view-definition.js';

/** Counts the values that do not fit their column in the latest runs of each document type, limited in runs and stored bytes. */
export function countUnfitValues({ db, tables }: StoreConnection, views: readonly ReportView[]) {
  const within = viewsWithin(views);
  return db.transaction().execute(async (tx) => {
    await withoutJit(tx);
    const counts: { readonly column: string; readonly count: number }[] = [];
    for (const view of views.filter(({ history }) => !history)) {
      // From the documents, since a view that keeps its rows in a table reads all of it.
      const query = viewDefinition(tables, view, within.get(viewKey(view)) ?? []).rows;
      const latest = sql`
        SELECT scan_id, sum(COALESCE(pg_column_size(data), 0)) OVER
          (ORDER BY completed_at DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM (SELECT scan_id, completed_at, data FROM ${tables.runs}
          WHERE document_type_slug = ${view.slug} AND status = 'completed' AND completed_at IS NOT NULL
          ORDER BY completed_at DESC LIMIT ${BATCH.runs}) AS run`;
      const { rows } = await sql<(typeof counts)[number]>`
        SELECT ${view.name} || '.' || unfit AS column, count(*)::int AS count
        FROM (${sql.raw(query)} AND run.scan_id = ANY (ARRAY(
          SELECT scan_id FROM (${latest}) AS latest WHERE COALESCE(before, 0) < ${BATCH.bytes}))) AS read, unnest(unfit_fields) AS unfit
        GROUP BY unfit`.execute(tx);
      counts.push(...rows);
    }
    return counts.sort((a, b) => b.count - a.count);
  });
}
