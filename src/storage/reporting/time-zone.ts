import { sql } from 'kysely';
import { DatabaseError, sqlstateOf } from '../connection/errors.js';
import type { StoreConnection } from '../connection/store-connection.js';

const INVALID_VALUE = '22023';

/** Returns the error of a time zone in the settings that PostgreSQL does not know, unlike Node.js. */
export function unknownTimeZone(zone: string): DatabaseError {
  const message = `PostgreSQL does not know the time zone ${zone} (SCANFEED_REPORTING_TIME_ZONE), so the days of daily_statistics follow another time zone; choose one in pg_timezone_names, or update the time zones of the server`;
  return new DatabaseError(INVALID_VALUE, 'time_zone', 'hold', message);
}

/**
 * Sets the time zone of the days of `daily_statistics`. Returns false if it is set already.
 * @throws DatabaseError if PostgreSQL does not know it
 */
export async function setReportingTimeZone({ db, tables }: StoreConnection, zone: string): Promise<boolean> {
  const { rows } = await sql`
    SELECT FROM ${sql.id(tables.schema, 'report_settings')} WHERE time_zone = ${zone}`.execute(db);
  if (rows.length > 0) return false;
  await sql`SELECT ${sql.id(tables.schema, 'set_reporting_time_zone')}(${zone})`.execute(db).catch((error) => {
    throw sqlstateOf(error) === INVALID_VALUE ? unknownTimeZone(zone) : error;
  });
  return true;
}
