import { type Kysely, type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import { type Tables, tablesOf } from '../tables/schema.js';
import type { Database } from './pool.js';

/** A connection to the tables of one installation. */
export interface StoreConnection {
  /** Runs statements. Inside a transaction, that of the transaction. */
  readonly db: Kysely<unknown>;
  readonly tables: Tables;
}

/**
 * @param schema the schema of a feed
 * @param home the schema of the process's settings
 */
export function connectStore(database: Pick<Database, 'sql'>, schema: string, home = schema): StoreConnection {
  return { db: database.sql, tables: tablesOf(schema, home) };
}

/** Returns a time as a parameter, in UTC. */
export function timestamp(time: Date | null): RawBuilder<Date> {
  return sql`${time?.toISOString() ?? null}::timestamptz`;
}

/** For the rest of a transaction: PostgreSQL takes ten times as long to compile a statement over documents as to run it. */
export async function withoutJit(transaction: QueryExecutorProvider): Promise<void> {
  await sql`SET LOCAL jit = off`.execute(transaction);
}

/** For the rest of a transaction that changes a table or view: later statements on it wait as long as it waits for earlier ones. */
export async function limitLockWaits(transaction: QueryExecutorProvider, seconds: number): Promise<void> {
  await sql`SET LOCAL lock_timeout = ${sql.lit(`${seconds}s`)}`.execute(transaction);
}
