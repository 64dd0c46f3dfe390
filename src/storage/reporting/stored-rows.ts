import { type RawBuilder, sql } from 'kysely';
import pg from 'pg';
import { DatabaseError, sqlstateOf } from '../connection/errors.js';
import { type StoreConnection, withoutJit } from '../connection/store-connection.js';
import { quoted, type Tables } from '../tables/schema.js';
import { endOfBatch } from './find-fields.js';
import type { StoredView } from './report-view.js';

/*
 * A typed view can keep its rows in a table, so that PostgreSQL can index them and need not unpack documents
 * (docs/decisions/0017). The table contains the rows up to a change, `stored_up_to`. The view reads runs that have
 * changed since then from their documents, and all other rows from the table. So the view is exact whenever it is read, although the
 * table may be behind.
 */

/** Maximum number of deleted runs in a batch. */
const DELETIONS = 1_000;
/** SQLSTATE of a row that does not fit into its table, or of a value that does not fit into an index. */
const TOO_LONG = '54000';

/** A typed view with its current definition. */
export interface DefinedView {
  readonly view: StoredView;
  /** The names of the columns. */
  readonly columns: readonly string[];
  /** The query that reads the rows from documents; a condition on `run` can be added at its end. */
  readonly rows: string;
  /** Fingerprint of the definition. */
  readonly fingerprint: string;
  /** The statements that build the view. */
  readonly statements: string;
}

/** Returns the name of the table. It is in the schema of the reports, where the daemon has the privilege to create relations. */
export function storedTable({ reportingSchema }: Tables, id: number): string {
  return `${quoted(reportingSchema)}.${quoted(`stored_${id}`)}`;
}

/**
 * Returns the statements that create the table or add columns to it.
 * @param fields the columns of the fields with their types, `betrag numeric`
 */
export function tableDefinition(
  tables: Tables,
  { id, name }: StoredView,
  rows: string,
  fields: readonly string[],
): readonly string[] {
  const table = storedTable(tables, id);
  const comment = `Rows of ${name}, up to report_views.stored_up_to; read the view instead`;
  return [
    `CREATE TABLE IF NOT EXISTS ${table} AS\n${rows}\nWITH NO DATA;`,
    ...fields.map((field) => `ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS ${field};`),
    `CREATE INDEX IF NOT EXISTS ${quoted(`stored_${id}_scan_id`)} ON ${table} (scan_id);`,
    `COMMENT ON TABLE ${table} IS ${pg.escapeLiteral(comment)};`,
    // Without a primary key, PostgreSQL otherwise refuses to delete rows while a publication of all tables exists.
    `ALTER TABLE ${table} REPLICA IDENTITY FULL;`,
    // A role that can erase runs must be able to delete their rows here.
    `DO $$ BEGIN EXECUTE format('GRANT SELECT, DELETE ON ${table} TO %I', (
       SELECT rolname FROM pg_roles JOIN pg_class AS class ON relowner = pg_roles.oid
       WHERE class.oid = '${quoted(tables.schema)}.runs'::regclass)); END $$;`,
  ];
}

/** Returns the query of the view: the stored rows of unchanged runs, and the rows of changed ones. */
export function storedOrChangedRows(
  tables: Tables,
  { id }: StoredView,
  { rows, columns, fingerprint }: Pick<DefinedView, 'rows' | 'columns' | 'fingerprint'>,
): string {
  const schema = quoted(tables.schema);
  // A transaction whose snapshot is older than this view finds another fingerprint, and rows without the columns that are new.
  const upTo = `(SELECT COALESCE(max(stored_up_to), 0) FROM ${schema}.report_views WHERE id = ${id} AND built_as = '${fingerprint}')`;
  // With an upper limit PostgreSQL expects few runs in this range, and uses the index.
  const changed = `run.change_seq > ${upTo} AND run.change_seq <= 9223372036854775807`;
  const unchanged = (table: string) =>
    `NOT EXISTS (SELECT FROM ${schema}.${table} AS run WHERE run.scan_id = stored.scan_id AND ${changed})`;
  return [
    `SELECT ${columns.map(quoted).join(', ')} FROM ${storedTable(tables, id)} AS stored`,
    `WHERE ${unchanged('runs')}\n  AND ${unchanged('deleted_runs')}`,
    `UNION ALL\n${rows}\n  AND ${changed}`,
  ].join('\n');
}

/** Condition on a row of `report_views`: there is a table. It is gone if somebody has dropped it with the view by hand. */
export function hasTable({ reportingSchema }: Tables) {
  const table = sql`to_regclass(format('%I.stored_%s', ${reportingSchema}::text, id))`;
  return sql`(stored_up_to IS NOT NULL AND ${table} IS NOT NULL)`;
}

/**
 * Replaces the stored rows of the next runs that have changed. Returns the approximate number of changes; 0 if there are no more,
 * another process is storing rows, or the view has another definition by now.
 */
export function storeNextRows(
  { db, tables }: StoreConnection,
  { view, columns, rows, fingerprint }: DefinedView,
): Promise<number> {
  const table = sql.raw(storedTable(tables, view.id));
  return db.transaction().execute(async (tx) => {
    await withoutJit(tx);
    const { rows: locked } = await sql<{ after: string }>`
      SELECT stored_up_to AS after FROM ${tables.reportViews}
      WHERE id = ${view.id} AND built_as = ${fingerprint} AND ${hasTable(tables)} FOR UPDATE SKIP LOCKED`.execute(tx);
    const after = locked[0]?.after;
    if (after === undefined) return 0;
    const last = await endOfChanges({ db: tx, tables }, after);
    if (last === null) return 0;
    const inBatch = sql`change_seq > ${after}::bigint AND change_seq <= ${last}::bigint`;
    await sql`DELETE FROM ${table} WHERE scan_id IN (
      SELECT scan_id FROM ${tables.runs} WHERE ${inBatch}
      UNION ALL SELECT scan_id FROM ${tables.deletedRuns} WHERE ${inBatch})`.execute(tx);
    const insert = sql`INSERT INTO ${table} (${sql.join(columns.map((name) => sql.id(name)))})
      ${sql.raw(rows)} AND run.change_seq > ${after}::bigint AND run.change_seq <= ${last}::bigint`;
    await explainTooLong(insert.execute(tx), view.name);
    await sql`UPDATE ${tables.reportViews} SET stored_up_to = ${last} WHERE id = ${view.id}`.execute(tx);
    return Number(BigInt(last) - BigInt(after));
  });
}

const selectStored = (tables: Tables) =>
  sql<{ id: number }>`SELECT id FROM ${tables.reportViews} WHERE ${hasTable(tables)} ORDER BY id`;

/** Returns the tables of views. */
export async function findStoredTables({ db, tables }: StoreConnection): Promise<readonly RawBuilder<unknown>[]> {
  const { rows } = await selectStored(tables).execute(db);
  return rows.map(({ id }) => sql.raw(storedTable(tables, id)));
}

/**
 * Deletes the stored rows of these runs, or all of them, in which case they are stored again. Waits for a process that is storing
 * rows, and has to run in a transaction.
 */
export async function deleteStoredRows({ db, tables }: StoreConnection, scanIds?: readonly string[]): Promise<void> {
  const { rows } = await sql<{ id: number }>`${selectStored(tables)} FOR UPDATE`.execute(db);
  for (const { id } of rows) {
    const ofRuns = scanIds === undefined ? sql`` : sql`WHERE scan_id = ANY (${scanIds}::text[])`;
    await sql`DELETE FROM ${sql.raw(storedTable(tables, id))} ${ofRuns}`.execute(db);
    if (scanIds === undefined)
      await sql`UPDATE ${tables.reportViews} SET stored_up_to = 0 WHERE id = ${id}`.execute(db);
  }
}

/** Rejects with the remedy if PostgreSQL cannot store a row. */
export async function explainTooLong<T>(work: Promise<T>, view: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (sqlstateOf(error) !== TOO_LONG) throw error;
    const message = `${view} has a value that is too long for an index (2,700 bytes), or a row that is too long for its table (8,160 bytes). The view still shows the value. Drop the index with \`scanfeed views index ${view} COLUMN --drop\`, or the table with \`scanfeed views store ${view} --drop\``;
    throw new DatabaseError(TOO_LONG, 'data', 'reject', message);
  }
}

/** Returns the last change of the next batch of changed and deleted runs; null if there is none. */
async function endOfChanges({ db, tables }: StoreConnection, after: string): Promise<string | null> {
  const ofRuns = await endOfBatch({ db, tables }, after);
  const { rows } = await sql<{ last: string | null; number: number }>`
    SELECT max(change_seq)::text AS last, count(*)::int AS number FROM (
      SELECT change_seq FROM ${tables.deletedRuns} WHERE change_seq > ${after}::bigint
      ORDER BY change_seq LIMIT ${DELETIONS}) AS next`.execute(db);
  const { last = null, number = 0 } = rows[0] ?? {};
  if (ofRuns === null || last === null) return ofRuns ?? last;
  return number === DELETIONS && BigInt(last) < BigInt(ofRuns) ? last : ofRuns;
}
