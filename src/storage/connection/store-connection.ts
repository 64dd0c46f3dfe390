import { type Kysely, type KyselyPlugin, type RawBuilder, RawNode, sql, WithSchemaPlugin } from 'kysely';
import { type ScanfeedSchema, type Tables, tablesOf } from '../schema/schema.js';
import type { Database } from './pool.js';

/** A database, bound to the tables of one installation. */
export interface StoreConnection {
  /** The query builder; it qualifies its tables with the schema. In a transaction, that of the transaction. */
  readonly db: Kysely<ScanfeedSchema>;
  /** The names of the tables for raw SQL, which the query builder leaves as it is. */
  readonly tables: Tables;
}

/** @param schema SCANFEED_DATABASE_SCHEMA */
export function connectStore(database: Pick<Database, 'sql'>, schema: string): StoreConnection {
  const db = database.sql.withPlugin(qualifyTables(schema));
  return { db: db as Kysely<ScanfeedSchema>, tables: tablesOf(schema) };
}

/** As `withSchema`, but raw statements are not searched for tables: that would double the time to build a commit. */
function qualifyTables(schema: string): KyselyPlugin {
  const plugin = new WithSchemaPlugin(schema);
  return {
    transformQuery: (query) => (RawNode.is(query.node) ? query.node : plugin.transformQuery(query)),
    transformResult: async ({ result }) => result,
  };
}

/** `= ANY (…)`: one parameter, however many values there are. */
export function anyOf<T extends string>(values: readonly T[]): RawBuilder<T> {
  return sql`ANY (${values})`;
}

/** A time as a parameter, in UTC. */
export function timestamp(time: Date | null): RawBuilder<Date> {
  return sql`${time?.toISOString() ?? null}::timestamptz`;
}
