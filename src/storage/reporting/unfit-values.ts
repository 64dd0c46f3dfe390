import { sql } from 'kysely';
import { type StoreConnection, withoutJit } from '../connection/store-connection.js';
import type { Tables } from '../schema/schema.js';
import { BATCH } from './find-fields.js';
import { type ReportView, viewKey } from './report-view.js';
import { viewDefinition, viewsWithin } from './view-definition.js';

/** A column of a typed view that is null although documents have values, of other types, for it. */
export interface UnfitValues {
  readonly view: string;
  readonly column: string;
  readonly count: number;
}

/** Counts the values that do not fit their column in the latest runs of each document type. Most frequent first. */
export async function countUnfitValues(
  { db, tables }: StoreConnection,
  views: readonly ReportView[],
): Promise<readonly UnfitValues[]> {
  const within = viewsWithin(views);
  return db.transaction().execute(async (tx) => {
    await withoutJit(tx);
    const counts: UnfitValues[] = [];
    for (const view of views.filter(({ history }) => !history)) {
      // From the documents, since a view that keeps its rows in a table reads all of it.
      const { rows: query } = viewDefinition(tables, view, within.get(viewKey(view)) ?? []);
      const { rows } = await sql<UnfitValues>`
        SELECT ${view.name} AS view, unfit AS column, count(*)::int AS count
        FROM (${sql.raw(query)} AND run.scan_id = ANY (${latestRuns(tables, view.slug)})) AS latest,
          unnest(unfit_fields) AS unfit
        GROUP BY unfit`.execute(tx);
      counts.push(...rows);
    }
    return counts.sort((a, b) => b.count - a.count);
  });
}

/** Returns a query for the ids of the latest runs of a type, limited in runs and in stored bytes. */
function latestRuns(tables: Tables, slug: string) {
  return sql`ARRAY(
    SELECT scan_id FROM (
      SELECT scan_id, sum(size) OVER (ORDER BY completed_at DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM (
        SELECT scan_id, completed_at, COALESCE(pg_column_size(data), 0) AS size FROM ${tables.runs}
        WHERE document_type_slug = ${slug} ORDER BY completed_at DESC LIMIT ${BATCH.runs}
      ) AS latest
    ) AS batch
    WHERE COALESCE(before, 0) < ${BATCH.bytes})`;
}
