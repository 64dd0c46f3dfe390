import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Backfill, BackfillCommit, FeedIdentity, LeaseGrant, ReadingPace } from '../sync/ports.js';
import { AS_OF } from './fence.js';
import type { Tables } from './schema.js';

interface BackfillRow extends Omit<Backfill, 'entries' | 'stored'> {
  /** Bigints as text. */
  readonly entries: string;
  readonly stored: string;
}

/**
 * What is to be read now: requests first, in their order, since somebody waits for them; then the history. Null until the
 * feed itself has read something: until then its service may still become another one.
 */
export async function nextBackfill(db: Kysely<unknown>, tables: Tables, feed: string): Promise<Backfill | null> {
  const { rows } = await sql<BackfillRow>`
    SELECT backfill.id::text, kind, since, until, backfill.cursor, delivered_up_to AS "deliveredUpTo",
      entries::text, stored::text
    FROM ${tables.backfills} AS backfill JOIN ${tables.feeds} AS feed ON feed.name = backfill.feed
    WHERE backfill.feed = ${feed} AND finished_at IS NULL AND feed.last_commit_at IS NOT NULL
    ORDER BY kind = 'history', backfill.id LIMIT 1`.execute(db);
  const row = rows[0];
  return row === undefined ? null : { ...row, entries: Number(row.entries), stored: Number(row.stored) };
}

/**
 * A fence for writes of a backfill: its epoch holds, and it stands where the page was read from. Both rows stay locked until
 * the commit: of two who read the same stretch (a leader and a command, say) the second writes nothing.
 */
export function fenceOnBackfill(tables: Tables, commit: BackfillCommit): RawBuilder<unknown> {
  const { lease, id, from, until, finished, feedHadCursor } = commit;
  return sql`
  SELECT ${AS_OF} FROM ${tables.feeds} AS feed JOIN ${tables.backfills} AS backfill ON backfill.feed = feed.name
  WHERE feed.name = ${lease.feed} AND feed.lease_epoch = ${lease.epoch} AND backfill.id = ${id}::bigint
    AND backfill.finished_at IS NULL AND backfill.cursor IS NOT DISTINCT FROM ${from}::text
    AND backfill.until = ${until.toISOString()}::timestamptz
    AND (${!finished || feedHadCursor} OR backfill.kind <> 'history' OR feed.cursor IS NULL)
  FOR NO KEY UPDATE`;
}

/** A stretch joins what the feed is complete from where it overlaps that by as much: whatever the clocks show. */
const OVERLAP = sql.lit('1 hour');

/**
 * Part of a commit, after `stored` and `filled`: where the backfill stands. With its end the feed is complete from where it began, if it
 * reached up to where the feed was complete from until then, and read all of it with the filters of now.
 */
export function backfillPosition(tables: Tables, commit: BackfillCommit): RawBuilder<unknown> {
  const { lease, id, to, finished, deliveredUpTo, entries, pace } = commit;
  const reached = sql`,
reached AS (
  UPDATE ${tables.feeds} AS feed SET
    start_since = CASE WHEN backfilled.kind = 'history' THEN backfilled.since ELSE feed.start_since END,
    complete_from = CASE
      WHEN feed.widened_at >= backfilled.requested_at THEN feed.complete_from
      WHEN backfilled.kind = 'history' OR backfilled.until >= feed.complete_from + interval ${OVERLAP}
        THEN LEAST(feed.complete_from, COALESCE(backfilled.since, '-infinity'))
      ELSE feed.complete_from END
  FROM backfilled WHERE feed.name = ${lease.feed}
)`;
  return sql`
backfilled AS (
  UPDATE ${tables.backfills} SET
    cursor = ${to}::text,
    delivered_up_to = GREATEST(delivered_up_to, ${deliveredUpTo?.toISOString() ?? null}::timestamptz),
    entries = entries + ${entries},
    stored = stored + ${runsStored(commit)},
    last_commit_at = clock_timestamp(),
    ${paceColumns(pace)},
    finished_at = ${finished ? sql`clock_timestamp()` : sql`NULL`}
  WHERE EXISTS (SELECT FROM fence) AND id = ${id}::bigint
  RETURNING kind, since, until, requested_at
)${finished ? reached : sql``}`;
}

/** How many runs this commit inserts or updates. */
function runsStored({ batch }: BackfillCommit): RawBuilder<number> {
  if (batch.entries.length === 0) return sql`0`;
  return sql`(SELECT count(*) FROM stored) + (SELECT count(*) FROM filled)`;
}

/** Notes how fast the feed itself is being read. */
export async function notePace(
  db: Kysely<unknown>,
  tables: Tables,
  lease: LeaseGrant,
  pace: ReadingPace | null,
): Promise<void> {
  await sql`
    UPDATE ${tables.feeds} SET ${paceColumns(pace)}
    WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch}`.execute(db);
}

function paceColumns(pace: ReadingPace | null): RawBuilder<unknown> {
  return sql`
    entries_per_second = ${pace?.entriesPerSecond ?? null}::double precision,
    seconds_left = ${pace?.secondsLeft ?? null}::double precision,
    paced_at = ${pace === null ? sql`NULL` : sql`clock_timestamp()`}`;
}

/**
 * Part of taking a feed, after `taken`: one that begins with its new runs leaves the history to be read behind it, up to its
 * first start. The feed itself begins an hour earlier, so that the two overlap whatever the service's clock shows.
 */
export function historyToRead(tables: Tables, { start }: FeedIdentity): RawBuilder<unknown> {
  if (start !== 'live') return sql``;
  return sql`,
    history AS (
      INSERT INTO ${tables.backfills} (feed, kind, until)
      SELECT name, 'history', date_trunc('milliseconds', clock_timestamp()) FROM taken WHERE lease_epoch = 1 -- created just now
    )`;
}

/** Of a row `feed`: when the history behind its start was read to its end; null: it is not, or there was none. */
export function historyReadAt(tables: Tables): RawBuilder<Date | null> {
  return sql`(SELECT finished_at FROM ${tables.backfills} AS history
        WHERE history.feed = feed.name AND history.kind = 'history')`;
}

/** Of a row `feed`: the history behind its start is still being read. */
export function historyIsBehind(tables: Tables): RawBuilder<boolean> {
  return sql`EXISTS (SELECT FROM ${tables.backfills} AS history
        WHERE history.feed = feed.name AND history.kind = 'history' AND history.finished_at IS NULL)`;
}

/** Of a row `feed`: everything from its beginning to its end was read. */
export function backfillIsComplete(tables: Tables): RawBuilder<boolean> {
  return sql`(feed.end_reached_at IS NOT NULL AND NOT ${historyIsBehind(tables)})`;
}
