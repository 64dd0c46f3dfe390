import { type RawBuilder, sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';

/** Number of stored runs that show which organization a schema belongs to. */
const SHOWN_RUNS = sql.lit(3);

/** What shows whether a feed can be stored in a schema. */
export interface SchemaContents {
  /** The addresses from which other feeds have read. */
  readonly services: readonly string[];
  /** The complete runs that changed last: of the feed if it has any, else of all feeds. */
  readonly runs: readonly StoredRun[];
}

export interface StoredRun {
  readonly scanId: string;
  readonly revision: number;
  readonly fileName: string;
  /** Milliseconds since 1970. */
  readonly submittedAt: number | null;
}

export type StoredSchema = ReturnType<typeof createStoredSchema>;

/** Creates the functions that read what a schema contains of a feed and of other feeds. */
export function createStoredSchema({ db, tables }: StoreConnection, feed: string) {
  const isKnown = sql<boolean>`EXISTS (SELECT FROM ${tables.feeds} WHERE name = ${feed})`;
  const latest = (condition: RawBuilder<unknown>) => sql`
    SELECT json_agg(stored) FROM (
      SELECT scan_id AS "scanId", revision, file_name AS "fileName",
        floor(extract(epoch FROM submitted_at) * 1000)::bigint AS "submittedAt"
      FROM ${tables.runs} WHERE result_state = 'complete' AND ${condition} ORDER BY change_seq DESC LIMIT ${SHOWN_RUNS}
    ) AS stored`;
  return {
    /** Returns whether the feed was started here before. */
    async hasFeed(): Promise<boolean> {
      const { rows } = await sql<{ known: boolean }>`SELECT ${isKnown} AS known`.execute(db);
      return rows[0]?.known === true;
    },

    /** Reads many runs of the other feeds to find those of a feed that has had no changes for long. */
    async readContents(): Promise<SchemaContents> {
      // A feed that is not known has no runs, which a search for them would find out by reading all others.
      const { rows } = await sql<SchemaContents>`
        SELECT ARRAY(
            SELECT DISTINCT base_url FROM ${tables.feeds} WHERE name <> ${feed} AND last_commit_at IS NOT NULL
          ) AS services,
          COALESCE((${latest(sql`feed = ${feed} AND ${isKnown}`)}), (${latest(sql`true`)}), '[]') AS runs`.execute(db);
      return rows[0] as SchemaContents;
    },
  };
}
