import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import type { ReportView } from './report-view.js';
import { explainTooLong, storedTable } from './stored-rows.js';

/** An index of the stored rows of a typed view. */
export interface StoredIndex {
  readonly view: string;
  /** Name of the index, in the schema of the reports. */
  readonly name: string;
  readonly columns: readonly string[];
  /** False: its creation was interrupted, and PostgreSQL does not use it. */
  readonly valid: boolean;
  readonly bytes: number;
}

/** Returns the indexes that people have created on stored rows, of all typed views. */
export async function listStoredIndexes({ db, tables }: StoreConnection): Promise<readonly StoredIndex[]> {
  const { rows } = await sql<StoredIndex>`
    SELECT view.name AS view, class.relname AS name, indisvalid AS valid,
      pg_relation_size(indexrelid)::double precision AS bytes,
      ARRAY(SELECT attname::text FROM unnest(indkey) WITH ORDINALITY AS key (number, place)
        JOIN pg_attribute ON attrelid = indrelid AND attnum = key.number ORDER BY place) AS columns
    FROM ${tables.reportViews} AS view
    JOIN pg_class AS stored ON stored.relname = 'stored_' || view.id
      AND stored.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ${tables.reportingSchema})
    JOIN pg_index ON indrelid = stored.oid
    JOIN pg_class AS class ON class.oid = indexrelid
    WHERE class.relname <> stored.relname || '_scan_id'
    ORDER BY view.id, indexrelid`.execute(db);
  return rows;
}

/** Creates an index without blocking the daemon. Not in a transaction. Only a lost connection leaves an invalid index. */
export async function createStoredIndex(
  connection: StoreConnection,
  { id, name }: Pick<ReportView, 'id' | 'name'>,
  columns: readonly string[],
): Promise<void> {
  const keys = sql.join(columns.map((column) => sql.id(column)));
  const create = sql`CREATE INDEX CONCURRENTLY ON ${sql.raw(storedTable(connection.tables, id))} (${keys})`;
  try {
    await explainTooLong(create.execute(connection.db), name);
  } catch (error) {
    await dropInvalid(connection, name, columns).catch(() => {});
    throw error;
  }
}

async function dropInvalid(connection: StoreConnection, view: string, columns: readonly string[]): Promise<void> {
  for (const index of await listStoredIndexes(connection))
    if (!index.valid && index.view === view && index.columns.join() === columns.join())
      await dropStoredIndex(connection, index.name);
}

/** Drops an index without blocking reports. Not in a transaction. */
export async function dropStoredIndex({ db, tables }: StoreConnection, name: string): Promise<void> {
  await sql`DROP INDEX CONCURRENTLY IF EXISTS ${sql.id(tables.reportingSchema, name)}`.execute(db);
}
