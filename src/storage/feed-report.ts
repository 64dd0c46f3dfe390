import { type Kysely, sql } from 'kysely';
import type { Tables } from './schema.js';

/** What an operator asks about a feed. Times are null until they are known. */
export interface FeedReport {
  readonly feed: string;
  readonly baseUrl: string;
  readonly filters: unknown;
  readonly dataCompleteAsOf: Date | null;
  readonly lagSeconds: number | null;
  /** Null: from the beginning of the history. */
  readonly completeFrom: Date | null;
  readonly reconciledAsOf: Date | null;
  readonly backfillComplete: boolean;
  readonly lastPollAt: Date | null;
  readonly lastCommitAt: Date | null;
  readonly lastDeliveredAt: Date | null;
  /** Null: no process holds the feed. */
  readonly leader: string | null;
  readonly runs: number;
  /** Open ones, by reason. */
  readonly pending: Readonly<Record<string, number>>;
  readonly quarantined: Readonly<Record<string, number>>;
}

interface ReportRow extends Omit<FeedReport, 'pending' | 'quarantined'> {
  readonly pending: Record<string, number> | null;
  readonly quarantined: Record<string, number> | null;
}

/** All feeds of the schema, by name. */
export async function readFeedReports(db: Kysely<unknown>, tables: Tables): Promise<readonly FeedReport[]> {
  const { rows } = await sql<ReportRow>`
    SELECT name AS feed, base_url AS "baseUrl", filters,
      data_complete_as_of AS "dataCompleteAsOf",
      extract(epoch FROM clock_timestamp() - data_complete_as_of)::double precision AS "lagSeconds",
      NULLIF(complete_from, '-infinity') AS "completeFrom",
      reconciled_as_of AS "reconciledAsOf",
      end_reached_at IS NOT NULL AS "backfillComplete",
      last_poll_at AS "lastPollAt", last_commit_at AS "lastCommitAt", last_delivered_at AS "lastDeliveredAt",
      CASE WHEN lease_expires_at > clock_timestamp() THEN lease_holder END AS leader,
      (SELECT count(*)::int FROM ${tables.runs} AS run WHERE run.feed = feed.name) AS runs,
      (SELECT jsonb_object_agg(reason, number) FROM (
        SELECT pending_reason AS reason, count(*) AS number FROM ${tables.runs} AS run
        WHERE run.feed = feed.name AND result_state = 'pending' GROUP BY pending_reason) AS pending) AS pending,
      (SELECT jsonb_object_agg(reason, number) FROM (
        SELECT reason, count(*) AS number FROM ${tables.quarantine} AS entry
        WHERE entry.feed = feed.name AND state = 'open' GROUP BY reason) AS open) AS quarantined
    FROM ${tables.feeds} AS feed ORDER BY name`.execute(db);
  return rows.map((row) => ({ ...row, pending: row.pending ?? {}, quarantined: row.quarantined ?? {} }));
}
