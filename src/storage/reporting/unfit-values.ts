import { sql } from 'kysely';
import { type StoreConnection, withoutJit } from '../connection/store-connection.js';
import { latestRuns } from './find-fields.js';
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
      const { rows } = await sql<(typeof counts)[number]>`
        SELECT ${view.name} || '.' || unfit AS column, count(*)::int AS count
        FROM (${sql.raw(query)} AND run.scan_id = ANY (${latestRuns(tables, view.slug)})) AS read, unnest(unfit_fields) AS unfit
        GROUP BY unfit`.execute(tx);
      counts.push(...rows);
    }
    return counts.sort((a, b) => b.count - a.count);
  });
}
