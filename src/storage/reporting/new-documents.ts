import { type RawBuilder, sql } from 'kysely';
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
  const views = decideColumns(known, found, ANY_NAMES);
  // A failing search is repeated with a single document: none of the latest ones may make it fail again.
  const slugs = runs === 1 ? [] : [...typesLeavingOutFields(known, found, views, ANY_NAMES)];
  if (slugs.length === 0 && sizeOf(views) === sizeOf(known)) return known;
  const seen = [...found];
  for (const slug of slugs) {
    seen.push(...(await findFields(connection, sql`scan_id = ANY (${latestRuns(connection.tables, slug)})`)));
  }
  return decideColumns(known, seen, await readNamingContext(connection));
}

/** Suffices to see whether there is anything to name. */
const ANY_NAMES: NamingContext = {
  takenNames: new Set(),
  reserved: new Set(),
};

/** Returns the number of views and columns, of which there are never fewer. */
function sizeOf(views: readonly ReportView[]): number {
  return views.reduce((sum, { columns }) => sum + 1 + columns.length, 0);
}

/** Returns whether runs have changed since the last search or the last stored rows. Locks nothing. */
export async function hasNewChanges({ db, tables }: StoreConnection): Promise<boolean> {
  const isAfter = (number: RawBuilder<unknown>) => sql`(
    EXISTS (SELECT FROM ${tables.runs} WHERE change_seq > ${number})
    OR EXISTS (SELECT FROM ${tables.deletedRuns} WHERE change_seq > ${number}))`;
  const { rows } = await sql`
    SELECT FROM ${tables.reportProgress} AS progress
    WHERE EXISTS (SELECT FROM ${tables.runs} WHERE change_seq > progress.change_seq)
      OR EXISTS (SELECT FROM ${tables.reportViews} AS view
        WHERE stores_rows <> (stored_up_to IS NOT NULL) OR ${isAfter(sql`view.stored_up_to`)})`.execute(db);
  return rows.length > 0;
}

/** Returns the approximate number of changes that a refresh has to search and to store in the tables of views. */
export async function countNewChanges({ db, tables }: StoreConnection): Promise<number> {
  const { rows } = await sql<{ changes: number }>`
    SELECT (last - progress.change_seq + COALESCE(
      (SELECT sum(last - COALESCE(stored_up_to, 0)) FROM ${tables.reportViews} WHERE stores_rows), 0))::double precision AS changes
    FROM ${tables.reportProgress} AS progress,
      (SELECT COALESCE(max(change_seq), 0) AS last FROM ${tables.runs}) AS latest`.execute(db);
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
      (SELECT array_agg(relname::text) FROM pg_class
        WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ${tables.reportingSchema})) AS taken,
      -- Keywords, and the system columns of every table: a table for the rows could not have another xmin.
      ARRAY(SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')
        UNION ALL SELECT attname FROM pg_attribute WHERE attrelid = 'pg_class'::regclass AND attnum < 0) AS reserved`.execute(
    db,
  );
  return { takenNames: new Set(rows[0]?.taken), reserved: new Set(rows[0]?.reserved) };
}
