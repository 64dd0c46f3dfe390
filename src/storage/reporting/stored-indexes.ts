import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import type { StoredView } from './report-view.js';
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

/**
 * Creates an index without blocking the daemon. Not in a transaction. Only a lost connection leaves an invalid index. Texts for
 * people have the collation of the database; `text_pattern_ops` keeps a new version of the host's languages from changing the
 * order of their index.
 */
export async function createStoredIndex(
  connection: StoreConnection,
  { id, name }: Pick<StoredView, 'id' | 'name'>,
  columns: readonly string[],
): Promise<void> {
  const stored = sql.raw(storedTable(connection.tables, id));
  const { rows } = await sql<{ name: string }>`SELECT attname AS name FROM pg_attribute
    WHERE attrelid = ${storedTable(connection.tables, id)}::regclass AND attcollation = '"default"'::regcollation`.execute(
    connection.db,
  );
  const isForPeople = (column: string) => rows.some(({ name: each }) => each === column);
  const keys = columns.map((column) => sql`${sql.id(column)} ${isForPeople(column) ? sql`text_pattern_ops` : sql``}`);
  const create = sql`CREATE INDEX CONCURRENTLY ON ${stored} (${sql.join(keys)})`;
  try {
    await explainTooLong(create.execute(connection.db), name);
  } catch (error) {
    await dropInvalid(connection, name, columns).catch(() => {});
    throw error;
  }
}

async function dropInvalid(connection: StoreConnection, view: string, columns: readonly string[]): Promise<void> {
  for (const index of await findIndexesOn(view, columns, connection))
    if (!index.valid) await dropStoredIndex(connection, index.name);
}

/** Returns the indexes of a view on these columns. */
export async function findIndexesOn(
  view: string,
  columns: readonly string[],
  connection: StoreConnection,
): Promise<readonly StoredIndex[]> {
  const indexes = await listStoredIndexes(connection);
  return indexes.filter((index) => index.view === view && index.columns.join() === columns.join());
}

/** Drops an index without blocking reports. Not in a transaction. */
export async function dropStoredIndex({ db, tables }: StoreConnection, name: string): Promise<void> {
  await sql`DROP INDEX CONCURRENTLY IF EXISTS ${sql.id(tables.reportingSchema, name)}`.execute(db);
}
