import {
  type Kysely,
  type KyselyPlugin,
  type QueryExecutorProvider,
  type RawBuilder,
  RawNode,
  sql,
  WithSchemaPlugin,
} from 'kysely';
import { type ScanfeedSchema, type Tables, tablesOf } from '../tables/schema.js';
import type { Database } from './pool.js';

/** A connection to the tables of one installation. */
export interface StoreConnection {
  /** The query builder, which qualifies tables with the schema. Inside a transaction, the one of the transaction. */
  readonly db: Kysely<ScanfeedSchema>;
  /** The names of the tables for raw SQL, which the query builder does not change. */
  readonly tables: Tables;
}

/**
 * @param schema the schema of a feed
 * @param home the schema of the process's settings
 */
export function connectStore(database: Pick<Database, 'sql'>, schema: string, home = schema): StoreConnection {
  const db = database.sql.withPlugin(qualifyTables(schema));
  return { db: db as Kysely<ScanfeedSchema>, tables: tablesOf(schema, home) };
}

/** Like `withSchema`, but does not search raw statements for tables: that would double the time to build a commit. */
function qualifyTables(schema: string): KyselyPlugin {
  const plugin = new WithSchemaPlugin(schema);
  return {
    transformQuery: (query) => (RawNode.is(query.node) ? query.node : plugin.transformQuery(query)),
    transformResult: async ({ result }) => result,
  };
}

/** Returns `ANY (…)`: one parameter for any number of values. */
export function anyOf<T extends string>(values: readonly T[]): RawBuilder<T> {
  return sql`ANY (${values})`;
}

/** Returns a time as a parameter, in UTC. */
export function timestamp(time: Date | null): RawBuilder<Date> {
  return sql`${time?.toISOString() ?? null}::timestamptz`;
}

/** For the rest of a transaction: PostgreSQL takes ten times as long to compile a statement over documents as to run it. */
export async function withoutJit(transaction: QueryExecutorProvider): Promise<void> {
  await sql`SET LOCAL jit = off`.execute(transaction);
}
