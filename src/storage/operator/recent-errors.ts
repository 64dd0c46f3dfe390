import { type RawBuilder, sql } from 'kysely';
import type { CurrentError } from '../../core/errors.js';
import type { StoreConnection } from '../connection/store-connection.js';
import type { Tables } from '../tables/schema.js';

/** Number of errors that are kept per feed. */
const KEPT = sql.lit(20);
/** Time without a record after the next try was due, after which the process counts as gone. */
const GONE_AFTER = sql.lit('10 minutes');
const IS_ONGOING = sql`(ended_at IS NULL AND next_try_at + interval ${GONE_AFTER} > clock_timestamp())`;
const MAX_MESSAGE_LENGTH = 1_000;

/** An outage to record. Times are ages in milliseconds, so that no two clocks are compared; a negative age is in the future. */
export interface ErrorRecord extends Omit<CurrentError, 'since' | 'nextTryAt'> {
  /** Number of the outage in its process. */
  readonly number: number;
  readonly sinceMs: number;
  readonly lastMs: number;
  readonly nextTryMs: number;
  /** Null: it is ongoing. */
  readonly endedMs: number | null;
}

/** A recorded outage. Times are ISO 8601. */
export interface RecentError extends CurrentError {
  readonly lastAt: string;
  /** Null: it is ongoing, or its process is gone. */
  readonly endedAt: string | null;
  readonly ongoing: boolean;
  readonly holder: string;
}

/** Creates a function that records outages of one process in the table `recent_errors`. */
export function createErrorWriter({ db, tables }: StoreConnection, feed: string, holder: string) {
  /** Writes one row per outage, updating it if it exists. Deletes all but the latest and the ongoing ones. */
  return async (records: readonly ErrorRecord[]): Promise<void> => {
    const json = JSON.stringify(records.map((record) => ({ ...record, message: storable(record.message) })));
    await sql`
      WITH written AS (
        INSERT INTO ${tables.recentErrors} (holder, stage, number, feed, kind, message, held, runbook, failures, since, last_at, next_try_at, ended_at)
        SELECT ${holder}::text, stage, number, ${feed}::text, kind, message, held, runbook, failures,
          ${ago('sinceMs')}, ${ago('lastMs')}, ${ago('nextTryMs')}, ${ago('endedMs')}
        FROM jsonb_to_recordset(${json}::jsonb) AS record (stage text, number integer, kind text, message text, held boolean, runbook text,
          failures integer, "sinceMs" double precision, "lastMs" double precision, "nextTryMs" double precision,
          "endedMs" double precision)
        WHERE EXISTS (SELECT FROM ${tables.feeds} WHERE name = ${feed})
        ON CONFLICT (holder, stage, number) DO UPDATE SET feed = EXCLUDED.feed, kind = EXCLUDED.kind, message = EXCLUDED.message,
          held = EXCLUDED.held, runbook = EXCLUDED.runbook, failures = EXCLUDED.failures, since = EXCLUDED.since, last_at = EXCLUDED.last_at, next_try_at = EXCLUDED.next_try_at,
          ended_at = EXCLUDED.ended_at
      )
      DELETE FROM ${tables.recentErrors} WHERE feed = ${feed} AND NOT ${IS_ONGOING} AND since < (
        SELECT since FROM ${tables.recentErrors} WHERE feed = ${feed} ORDER BY since DESC OFFSET ${KEPT} - 1 LIMIT 1)`.execute(
      db,
    );
  };
}

/**
 * Part of a report on a row `feed` of feeds: its outages as an array of {@link RecentError}, ongoing ones first, newest first;
 * null if there are none.
 */
export function recentErrorsOf(tables: Tables): RawBuilder<unknown> {
  return sql`
      (SELECT jsonb_agg(jsonb_build_object('stage', stage, 'kind', kind, 'message', message, 'held', held, 'runbook', runbook, 'since', since,
          'nextTryAt', next_try_at, 'lastAt', last_at, 'endedAt', ended_at, 'failures', failures, 'holder', holder,
          'ongoing', ongoing) ORDER BY ongoing DESC, since DESC)
        FROM (SELECT *, ${IS_ONGOING} AS ongoing FROM ${tables.recentErrors} AS error WHERE error.feed = feed.name
          ORDER BY ongoing DESC, since DESC LIMIT ${KEPT}) AS latest)`;
}

/** Reads the errors of a feed as in {@link recentErrorsOf}. */
export async function readRecentErrors({ db, tables }: StoreConnection, feed: string): Promise<readonly RecentError[]> {
  const { rows } = await sql<{ readonly errors: readonly RecentError[] | null }>`
    SELECT ${recentErrorsOf(tables)} AS errors FROM ${tables.feeds} AS feed WHERE name = ${feed}`.execute(db);
  return rows[0]?.errors ?? [];
}

function ago(column: keyof ErrorRecord): RawBuilder<unknown> {
  return sql`clock_timestamp() - ${sql.ref(column)} * interval '1 millisecond'`;
}

/** Makes a message valid for PostgreSQL and limits its length. */
function storable(message: string): string {
  return Buffer.from(message.slice(0, MAX_MESSAGE_LENGTH)).toString().replaceAll('\0', '\ufffd');
}
