import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';

/** Sets the time zone of the days of `daily_statistics`. Returns false if it is set already. */
export async function setReportingTimeZone({ db, tables }: StoreConnection, zone: string): Promise<boolean> {
  const current = await db.selectFrom('report_settings').select('time_zone').executeTakeFirst();
  if (current?.time_zone === zone) return false;
  await sql`SELECT ${sql.id(tables.schema, 'set_reporting_time_zone')}(${zone})`.execute(db);
  return true;
}
