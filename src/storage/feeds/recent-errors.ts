import { type RawBuilder, sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import type { Tables } from '../schema/schema.js';

/** So many of a feed are kept. */
const KEPT = sql.lit(20);
/** A process that has told nothing for so long after its next try was due is gone. */
const SILENT = sql.lit('10 minutes');
const GOES_ON = sql`(ended_at IS NULL AND next_try_at + interval ${SILENT} > clock_timestamp())`;
const LONGEST_MESSAGE = 1_000;

/** An outage to be noted. Times are ages in milliseconds, so that no two clocks are compared; negative: in the future. */
export interface ErrorRecord {
  readonly stage: string;
  /** Counts the outages of the process. */
  readonly number: number;
  readonly kind: string;
  readonly message: string;
  readonly failures: number;
  readonly sinceMs: number;
  readonly lastMs: number;
  readonly nextTryMs: number;
  /** Null: it goes on. */
  readonly endedMs: number | null;
}

/** Times are ISO 8601. */
export interface RecentError {
  readonly stage: string;
  readonly kind: string;
  readonly message: string;
  readonly since: string;
  readonly lastAt: string;
  /** Null: it goes on, or its process is gone. */
  readonly endedAt: string | null;
  readonly goesOn: boolean;
  readonly failures: number;
  readonly holder: string;
}

/** Notes outages of one process on a feed. */
export function createErrorWriter({ db, tables }: StoreConnection, feed: string, holder: string) {
  /** Notes each outage in one row however often it is noted, and forgets all but the latest and those that go on. */
  return async (notes: readonly ErrorRecord[]): Promise<void> => {
    const given = JSON.stringify(notes.map((note) => ({ ...note, message: storable(note.message) })));
    await sql`
      WITH noted AS (
        INSERT INTO ${tables.recentErrors} (holder, stage, number, feed, kind, message, failures, since, last_at, next_try_at, ended_at)
        SELECT ${holder}::text, stage, number, ${feed}::text, kind, message, failures,
          ${ago('sinceMs')}, ${ago('lastMs')}, ${ago('nextTryMs')}, ${ago('endedMs')}
        FROM jsonb_to_recordset(${given}::jsonb) AS note (stage text, number integer, kind text, message text,
          failures integer, "sinceMs" double precision, "lastMs" double precision, "nextTryMs" double precision,
          "endedMs" double precision)
        WHERE EXISTS (SELECT FROM ${tables.feeds} WHERE name = ${feed})
        ON CONFLICT (holder, stage, number) DO UPDATE SET kind = EXCLUDED.kind, message = EXCLUDED.message,
          failures = EXCLUDED.failures, last_at = EXCLUDED.last_at, next_try_at = EXCLUDED.next_try_at,
          ended_at = EXCLUDED.ended_at
      )
      DELETE FROM ${tables.recentErrors} WHERE feed = ${feed} AND NOT ${GOES_ON} AND since < (
        SELECT since FROM ${tables.recentErrors} WHERE feed = ${feed} ORDER BY since DESC OFFSET ${KEPT} - 1 LIMIT 1)`.execute(
      db,
    );
  };
}

/**
 * For a report on the row `feed` of feeds: its outages as {@link RecentError}, newest first, those that go on before
 * all others; null: none.
 */
export function recentErrorsOf(tables: Tables): RawBuilder<unknown> {
  return sql`
      (SELECT jsonb_agg(jsonb_build_object('stage', stage, 'kind', kind, 'message', message, 'since', since,
          'lastAt', last_at, 'endedAt', ended_at, 'failures', failures, 'holder', holder,
          'goesOn', goes_on) ORDER BY goes_on DESC, since DESC)
        FROM (SELECT *, ${GOES_ON} AS goes_on FROM ${tables.recentErrors} AS trouble WHERE trouble.feed = feed.name
          ORDER BY goes_on DESC, since DESC LIMIT ${KEPT}) AS latest)`;
}

function ago(column: keyof ErrorRecord): RawBuilder<unknown> {
  return sql`clock_timestamp() - ${sql.ref(column)} * interval '1 millisecond'`;
}

/** Text that PostgreSQL can hold, bounded. */
function storable(message: string): string {
  return Buffer.from(message.slice(0, LONGEST_MESSAGE)).toString().replaceAll('\0', '\ufffd');
}
