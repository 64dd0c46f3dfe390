import { sql } from 'kysely';
import type { Failure } from '../../core/errors.js';
import { sqlstateOf } from '../connection/errors.js';
import type { StoreConnection } from '../connection/store-connection.js';

const INVALID_VALUE = '22023';

/** PostgreSQL does not know the time zone of the setting, which Node.js knows. */
export class UnknownTimeZone extends Error implements Failure {
  override readonly name = 'UnknownTimeZone';
  readonly ofDatabase = true;
  readonly kind = 'time_zone';
  readonly action = 'hold';
  constructor(zone: string) {
    super(
      `PostgreSQL does not know the time zone ${zone} (SCANFEED_REPORTING_TIME_ZONE), so daily_statistics keeps the days of another; choose one in pg_timezone_names, or update the time zones of the server`,
    );
  }
}

/**
 * Sets the time zone of the days of `daily_statistics`. Returns false if it is set already.
 * @throws UnknownTimeZone
 */
export async function setReportingTimeZone({ db, tables }: StoreConnection, zone: string): Promise<boolean> {
  const { rows } = await sql`
    SELECT FROM ${sql.id(tables.schema, 'report_settings')} WHERE time_zone = ${zone}`.execute(db);
  if (rows.length > 0) return false;
  await sql`SELECT ${sql.id(tables.schema, 'set_reporting_time_zone')}(${zone})`.execute(db).catch((error) => {
    throw sqlstateOf(error) === INVALID_VALUE ? new UnknownTimeZone(zone) : error;
  });
  return true;
}
