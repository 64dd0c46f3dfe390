import { sql } from 'kysely';
import { sqlstateOf } from '../connection/errors.js';
import { type StoreConnection, withoutJit } from '../connection/store-connection.js';
import { decideColumns, type NamingContext, typesLeavingOutFields } from './decide-columns.js';
import { BATCH, endOfBatch, findFields, latestRuns, type SeenField } from './find-fields.js';
import type { ReportView } from './report-view.js';
import { deleteStoredRows } from './stored-rows.js';
import { readReportViews, storeDecisions } from './stored-views.js';
import { storeShapes } from './value-shapes.js';

/** A document that PostgreSQL could not search, such as a damaged one. Its fields get no columns. */
export interface SkippedDocument {
  readonly scanId: string;
  readonly error: unknown;
}

interface FoundFields {
  readonly more: boolean;
  /** Approximate number of changes that were searched. */
  readonly changes: number;
  readonly views: number;
  readonly columns: number;
  readonly skipped?: SkippedDocument | undefined;
}

/** SQLSTATEs of a document that PostgreSQL cannot search, now or later. */
const UNSEARCHABLE = /^(22|54|XX)/;

/**
 * Searches the next batch of documents and stores new types and fields. Takes no lock that blocks a commit. Returns what it found
 * and whether there may be more; null if another process is searching. If a document fails the search, the batch is halved until it
 * is the only one, which is skipped.
 */
export async function findNewFields(connection: StoreConnection, runs = BATCH.runs): Promise<FoundFields | null> {
  const range = { after: '', last: '' };
  try {
    return await searchBatch(connection, runs, range);
  } catch (error) {
    if (!UNSEARCHABLE.test(sqlstateOf(error) ?? '')) throw error;
    if (runs > 1) return findNewFields(connection, Math.ceil(runs / 2));
    return { more: true, changes: 1, views: 0, columns: 0, skipped: await skip(connection, range, error) };
  }
}

/** Moves past a document, and names it unless it has changed since. */
async function skip({ db, tables }: StoreConnection, { after, last }: Range, error: unknown) {
  await sql`UPDATE ${tables.reportProgress} SET change_seq = ${last} WHERE change_seq = ${after}`.execute(db);
  const { rows } = await sql<{ scanId: string }>`
    SELECT scan_id AS "scanId" FROM ${tables.runs} WHERE change_seq = ${last}`.execute(db);
  return rows.map(({ scanId }) => ({ scanId, error }))[0];
}

/** The changes that are searched: after one, up to another. */
interface Range {
  after: string;
  last: string;
}

/** @param range is set before the search */
function searchBatch({ db, tables }: StoreConnection, runs: number, range: Range): Promise<FoundFields | null> {
  return db.transaction().execute(async (tx) => {
    const connection = { db: tx, tables };
    await withoutJit(tx);
    const { rows: locked } = await sql<{ at: string }>`
      SELECT change_seq AS at FROM ${tables.reportProgress} FOR UPDATE SKIP LOCKED`.execute(tx);
    const at = locked[0]?.at;
    if (at === undefined) return null;
    const last = await endOfBatch(connection, at, runs);
    if (last === null) return { more: false, changes: 0, views: 0, columns: 0 };
    Object.assign(range, { after: at, last });
    const known = await readReportViews(connection);
    const found = await findFields(connection, sql`change_seq > ${at}::bigint AND change_seq <= ${last}::bigint`);
    const views = found.length === 0 ? known : await decideViews(connection, known, found, runs);
    const added = await storeDecisions(connection, known, views);
    await storeShapes(connection, found, views);
    await sql`UPDATE ${tables.reportProgress} SET change_seq = ${last}`.execute(tx);
    return { more: true, changes: Number(BigInt(last) - BigInt(at)), ...added };
  });
}

/** Counts fields in the latest documents too where rare ones are left out: the batch may have one document of the type. */
async function decideViews(
  connection: StoreConnection,
  known: readonly ReportView[],
  found: readonly SeenField[],
  runs: number,
): Promise<readonly ReportView[]> {
  const naming = await readNamingContext(connection);
  const views = decideColumns(known, found, naming);
  // A failing search is repeated with a single document, so that no other document makes it fail again.
  const slugs = runs === 1 ? [] : [...typesLeavingOutFields(known, found, views, naming)];
  if (slugs.length === 0) return views;
  const seen = [...found];
  for (const slug of slugs) {
    seen.push(...(await findFields(connection, sql`scan_id = ANY (${latestRuns(connection.tables, slug)})`)));
  }
  return decideColumns(known, seen, naming);
}

/**
 * Returns the approximate number of changes that a refresh has to search and to store in the tables of views; a table that has to be
 * dropped counts as one. 0 if there are none. Locks nothing.
 */
export async function countNewChanges({ db, tables }: StoreConnection): Promise<number> {
  const { rows } = await sql<{ changes: number }>`
    SELECT (GREATEST(run - progress.change_seq, 0) + COALESCE((
      SELECT sum(CASE WHEN stores_rows THEN GREATEST(run, deleted) - COALESCE(stored_up_to, 0) ELSE 1 END)
      FROM ${tables.reportViews} WHERE stores_rows OR stored_up_to IS NOT NULL), 0))::double precision AS changes
    FROM ${tables.reportProgress} AS progress,
      (SELECT COALESCE((SELECT max(change_seq) FROM ${tables.runs}), 0) AS run,
        COALESCE((SELECT max(change_seq) FROM ${tables.deletedRuns}), 0) AS deleted) AS latest`.execute(db);
  return rows[0]?.changes ?? 0;
}

/** Makes the next search, and the storing of rows, start with the first document. Existing views and columns remain. */
export function forgetProgress({ db, tables }: StoreConnection): Promise<void> {
  return db.transaction().execute(async (tx) => {
    await sql`UPDATE ${tables.reportProgress} SET change_seq = 0`.execute(tx);
    await sql`DELETE FROM ${tables.reportShapes}`.execute(tx);
    await deleteStoredRows({ db: tx, tables });
  });
}

async function readNamingContext({ db, tables }: StoreConnection): Promise<NamingContext> {
  const { rows } = await sql<{ taken: string[] | null; reserved: string[] }>`
    SELECT
      -- By the index of names: a database may have a thousand schemas.
      (SELECT array_agg(relname::text) FROM pg_class
        WHERE relname LIKE 'document%' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ${tables.reportingSchema})) AS taken,
      -- Keywords, and the system columns of every table: a table for the rows could not have another xmin.
      ARRAY(SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')
        UNION ALL SELECT attname FROM pg_attribute WHERE attrelid = 'pg_class'::regclass AND attnum < 0) AS reserved`.execute(
    db,
  );
  return { takenNames: new Set(rows[0]?.taken), reserved: new Set(rows[0]?.reserved) };
}
