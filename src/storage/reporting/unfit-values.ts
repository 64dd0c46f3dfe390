import { sql } from 'kysely';
import { type StoreConnection, withoutJit } from '../connection/store-connection.js';
import { defineViews } from './build-views.js';
import { latestRuns } from './find-fields.js';

/** Counts the values that do not fit their column in the latest runs of each document type, limited in runs and stored bytes. */
export function countUnfitValues({ db, tables }: StoreConnection) {
  return db.transaction().execute(async (tx) => {
    await withoutJit(tx);
    const counts: { readonly column: string; readonly count: number }[] = [];
    // From the documents, since a view that keeps its rows in a table reads all of it.
    for (const { view, rows: query } of await defineViews({ db: tx, tables })) {
      if (view.history) continue;
      const { rows } = await sql<(typeof counts)[number]>`
        SELECT ${view.name} || '.' || unfit AS column, count(*)::int AS count
        FROM (${sql.raw(query)} AND run.scan_id = ANY (${latestRuns(tables, view.slug)})) AS read, unnest(unfit_fields) AS unfit
        GROUP BY unfit`.execute(tx);
      counts.push(...rows);
    }
    return counts.sort((a, b) => b.count - a.count);
  });
}
