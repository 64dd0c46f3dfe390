import { sql } from 'kysely';
import type { FeedStatus, ReadingPace } from '../../sync/ports/index.js';
import { type ServerFacts, whyReadOnly } from '../connection/server-facts.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { initialSyncIsComplete } from '../passes/passes.js';
import { IS_RETRIED } from '../runs/pending.js';
import { ACCEPTS_BAD_UNTIL, leader, STILL_COMPLETE_AS_OF } from '../tables/lease-columns.js';
import type { FeedRow } from './feeds.js';
import { type RecentError, recentErrorsOf } from './recent-errors.js';

/** The report on a feed for operators. Times are null until they are known. */
export interface FeedReport
  extends Omit<FeedRow, 'name' | 'startSince' | 'filtersWidenedAt'>,
    Pick<FeedStatus, SharedFigure> {
  readonly feed: string;
  readonly lagSeconds: number | null;
  /** The speed of the feed while it is catching up; null: it is not catching up, or no recent measurement is stored. */
  readonly pace: ReadingPace | null;
  /** Unfinished passes. */
  readonly passes: readonly ReportedPass[];
  /** Why the server accepts no writes, with the remedy; null: it accepts them. */
  readonly writesRefused: string | null;
  readonly runs: number;
  /** Whether `runs` is the planner's estimate: counting a large table would take minutes. */
  readonly runsEstimated: boolean;
  /** Completed productive runs that are in test mode only because an earlier revision said so. */
  readonly runsWithEarlierTestMode: number;
  /** Runs stored or changed in the last five minutes, up to 10,000. */
  readonly storedRecently: number;
  /** Number of pending results that are retried, by reason. */
  readonly pending: Readonly<Record<string, number>>;
  /** Time since when the oldest one is pending, and time of the next try. */
  readonly pendingSince: Date | null;
  readonly pendingNextTryAt: Date | null;
  /** Number of pending results that an operator gave up; not included in `pending`. */
  readonly givenUp: number;
  /** Number of open entries in quarantine, by reason. */
  readonly quarantined: Readonly<Record<string, number>>;
  /** Time of the last delivery of an open entry. */
  readonly quarantinedLastAt: Date | null;
  /** The latest outages: ongoing ones first, newest first. */
  readonly recentErrors: readonly RecentError[];
  /** The latest earlier positions of its cursor, newest first. */
  readonly positions: readonly ReportedPosition[];
}

/** The figures that the engine reads too. */
type SharedFigure =
  | 'initialSyncComplete'
  | 'lastPollAt'
  | 'lastCommitAt'
  | 'stuckSince'
  | 'acceptsBadUntil'
  | 'runsWithoutData';

/** An earlier position of a feed. Times are ISO 8601. The cursor itself is not shown; the id identifies it. */
export interface ReportedPosition {
  readonly id: string;
  readonly notedAt: string;
  /** `checkpoint`, `rejected` or `rewind`. */
  readonly reason: string;
  /** Delivery time up to which the feed was read at this position, service clock. */
  readonly deliveredUpTo: string | null;
}

/** An unfinished pass. Times are ISO 8601. */
export interface ReportedPass {
  /** `recent`, `full`, `history` or `backfill`. */
  readonly kind: string;
  readonly since: string | null;
  readonly until: string;
  readonly deliveredUpTo: string | null;
  readonly entries: number;
  /** Null: it is not running now. */
  readonly pace: ReadingPace | null;
}

/** Maximum number of runs in the schema that are counted exactly. */
const MAX_COUNTED = 100_000;
/** Maximum number of recent changes of all feeds that are searched for runs stored in the last five minutes. */
export const MAX_RECENT = 10_000;
const POSITIONS_SHOWN = 5;

/** Creates a function that reads the reports on all feeds of a schema. */
export function createFeedReports({ db, tables }: StoreConnection) {
  /** Returns the planner's estimate, from the statistics of the table. */
  const estimateRuns = async (feed: string): Promise<number> => {
    const { rows } = await sql<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>`
      EXPLAIN (FORMAT JSON) SELECT FROM ${tables.runs} WHERE feed = ${sql.lit(feed)}`.execute(db);
    return rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
  };
  /**
   * Returns the reports, ordered by name of the feed.
   * @param maxCounted number of runs in the schema above which their number is estimated
   */
  return async (maxCounted = MAX_COUNTED): Promise<readonly FeedReport[]> => {
    const { rows } = await sql<Row>`
      WITH size AS MATERIALIZED (
        SELECT count(*) <= ${maxCounted} AS small FROM (SELECT FROM ${tables.runs} LIMIT ${maxCounted} + 1) AS first
      ), latest AS MATERIALIZED (
        SELECT feed, synced_at FROM ${tables.runs} ORDER BY change_seq DESC LIMIT ${MAX_RECENT}
      )
      SELECT name AS feed, base_url AS "baseUrl", filters,
        ${STILL_COMPLETE_AS_OF} AS "dataCompleteAsOf",
        extract(epoch FROM clock_timestamp() - ${STILL_COMPLETE_AS_OF})::double precision AS "lagSeconds",
        NULLIF(complete_from, '-infinity') AS "completeFrom",
        reconciled_as_of AS "reconciledAsOf",
        ${initialSyncIsComplete(tables)} AS "initialSyncComplete",
        ${PACE} AS pace,
        COALESCE((SELECT jsonb_agg(jsonb_build_object('kind', kind, 'since', since, 'until', until,
            'deliveredUpTo', delivered_up_to, 'entries', entries, 'pace', ${PACE}) ORDER BY kind = 'history', id)
          FROM ${tables.passes} AS pass WHERE pass.feed = feed.name AND finished_at IS NULL), '[]') AS passes,
        last_poll_at AS "lastPollAt", last_commit_at AS "lastCommitAt", last_delivered_at AS "lastDeliveredAt",
        stuck_since AS "stuckSince", ${ACCEPTS_BAD_UNTIL} AS "acceptsBadUntil",
        pg_is_in_recovery() AS standby, current_setting('transaction_read_only')::boolean AS "readOnly",
        ${leader(tables)} AS leader,
        CASE WHEN (SELECT small FROM size) THEN
          (SELECT count(*)::int FROM ${tables.runs} AS run WHERE run.feed = feed.name) END AS counted,
        (SELECT count(*)::int FROM ${tables.runs} AS run WHERE run.feed = feed.name AND status = 'completed'
          AND result_state = 'complete' AND data IS NULL) AS "runsWithoutData",
        (SELECT count(*)::int FROM ${tables.runs} AS run WHERE run.feed = feed.name AND status = 'completed'
          AND environment = 'prod' AND partner_test_mode AND test_mode_revision < revision) AS "runsWithEarlierTestMode",
        (SELECT count(*)::int FROM latest
          WHERE latest.feed = feed.name AND synced_at > clock_timestamp() - interval '5 minutes') AS "storedRecently",
        (SELECT min(pending_since) FROM ${tables.runs} AS run
          WHERE run.feed = feed.name AND result_state = 'pending' AND ${IS_RETRIED}) AS "pendingSince",
        (SELECT min(next_try_at) FROM ${tables.runs} AS run
          WHERE run.feed = feed.name AND result_state = 'pending' AND ${IS_RETRIED}) AS "pendingNextTryAt",
        (SELECT max(last_seen_at) FROM ${tables.quarantine} AS entry
          WHERE entry.feed = feed.name AND state = 'open') AS "quarantinedLastAt",
        COALESCE((SELECT jsonb_agg(jsonb_build_object('id', id::text, 'notedAt', noted_at, 'reason', reason,
            'deliveredUpTo', last_delivered_at) ORDER BY id DESC)
          FROM (SELECT * FROM ${tables.cursorHistory} AS noted WHERE noted.feed = feed.name
            ORDER BY id DESC LIMIT ${POSITIONS_SHOWN}) AS earlier), '[]') AS positions,
        COALESCE(${recentErrorsOf(tables)}, '[]') AS "recentErrors",
        COALESCE((SELECT jsonb_object_agg(reason, number) FROM (
          SELECT pending_reason AS reason, count(*) AS number FROM ${tables.runs} AS run
          WHERE run.feed = feed.name AND result_state = 'pending' AND ${IS_RETRIED}
          GROUP BY pending_reason) AS pending), '{}') AS pending,
        (SELECT count(*)::int FROM ${tables.runs} AS run
          WHERE run.feed = feed.name AND result_state = 'pending' AND NOT ${IS_RETRIED}) AS "givenUp",
        COALESCE((SELECT jsonb_object_agg(reason, number) FROM (
          SELECT reason, count(*) AS number FROM ${tables.quarantine} AS entry
          WHERE entry.feed = feed.name AND state = 'open' GROUP BY reason) AS open), '{}') AS quarantined
      FROM ${tables.feeds} AS feed ORDER BY name`.execute(db);
    return Promise.all(
      rows.map(async ({ counted, standby, readOnly, ...report }) => ({
        ...report,
        writesRefused: whyReadOnly({ standby, readOnly }),
        runs: counted ?? (await estimateRuns(report.feed)),
        runsEstimated: counted === null,
      })),
    );
  };
}

interface Row
  extends Omit<FeedReport, 'runs' | 'runsEstimated' | 'writesRefused'>,
    Pick<ServerFacts, 'standby' | 'readOnly'> {
  readonly counted: number | null;
}

/** For a row of `feeds` or `passes`: its speed, if it was measured in the last minute. */
const PACE = sql`CASE WHEN rate_measured_at > clock_timestamp() - interval '1 minute' THEN
        jsonb_build_object('entriesPerSecond', entries_per_second, 'secondsLeft', seconds_left) END`;
