import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import { FIRST_VALUE_COLUMNS } from '../tables/run-columns.js';

/** What has changed around the tables: facts for people. */
interface Surroundings {
  /** Statements that record the present version of each collation that has changed since its indexes were built. */
  readonly refreshes: readonly string[];
  /** Columns and constraints of the tables of runs that scanfeed has not made. */
  readonly additions: readonly string[];
  /** Whether the server knows the time zone. */
  readonly knowsZone: boolean;
}

/** Constraints of scanfeed besides its primary keys. */
const OWN =
  /^(runs_(revision|status|environment|result_state|stored_by)_check|pending_has_reason_and_times|quarantine_state_check|quarantine_feed_identity_key)$/;

/** Reads what has changed around the tables. Every column of scanfeed has a comment. */
export async function readSurroundings({ db, tables }: StoreConnection, zone: string): Promise<Surroundings> {
  const { rows } = await sql<{ refreshes: string[]; columns: string[]; constraints: string[]; knows_zone: boolean }>`
    WITH extended AS (
      SELECT class.oid, relname FROM pg_class AS class JOIN pg_namespace AS own ON own.oid = relnamespace
      WHERE nspname = ${tables.schema} AND relname IN ('runs', 'run_history', 'quarantine'))
    SELECT ARRAY(
        SELECT format('ALTER DATABASE %I REFRESH COLLATION VERSION', datname) FROM pg_database
        WHERE datname = current_database() AND datcollversion <> pg_database_collation_actual_version(oid)
        UNION ALL
        SELECT format('ALTER COLLATION %s REFRESH VERSION', oid::regcollation) FROM pg_collation
        WHERE collversion <> pg_collation_actual_version(oid)
          AND oid IN (SELECT unnest(indcollation::oid[]) FROM pg_index)) AS refreshes,
      ARRAY(SELECT 'the column ' || relname || '.' || attname FROM extended JOIN pg_attribute ON attrelid = oid
        WHERE attnum > 0 AND NOT attisdropped AND col_description(attrelid, attnum) IS NULL) AS columns,
      ARRAY(SELECT conname::text FROM extended JOIN pg_constraint ON conrelid = extended.oid
        WHERE contype IN ('c', 'f', 'u', 'x')
        UNION ALL
        SELECT 'NOT NULL of ' || relname || '.' || attname FROM extended JOIN pg_attribute ON attrelid = oid
        WHERE attnotnull AND attname = ANY (${FIRST_VALUE_COLUMNS})) AS constraints,
      EXISTS (SELECT FROM pg_timezone_names WHERE lower(name) = lower(${zone})) AS knows_zone`.execute(db);
  const [{ refreshes = [], columns = [], constraints = [], knows_zone: knowsZone = true } = {}] = rows;
  const added = constraints.filter((name) => !OWN.test(name)).map((name) => `the constraint ${name}`);
  return { refreshes, additions: [...columns, ...added], knowsZone };
}
