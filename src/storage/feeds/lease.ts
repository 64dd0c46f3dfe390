import { type RawBuilder, sql } from 'kysely';
import type { Failure } from '../../core/errors.js';
import { type FeedFilters, UNFILTERED } from '../../core/feed-filters.js';
import type { FeedIdentity, LeaseStore } from '../../sync/ports/index.js';
import { DATABASE_MS, type DatabaseClock } from '../connection/database-clock.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import { beginHistoryPass } from '../passes/passes.js';
import { isLed, STILL_COMPLETE_AS_OF } from '../tables/lease-columns.js';
import { quoted, type Tables } from '../tables/schema.js';

/** How far before the first start `now` and `live` begin, so that runs delivered during the start are not missed. */
const START_OVERLAP = sql.lit('1 hour');

/** The stored cursor belongs to another service. Held until an operator resolves it. */
export class AnotherService extends Error implements Failure {
  override readonly name = 'AnotherService';
  readonly kind = 'another_service';
  readonly action = 'hold';
  constructor({ name, baseUrl }: Pick<FeedIdentity, 'name' | 'baseUrl'>, stored: string) {
    super(
      `the feed ${name} belongs to ${stored}, but the configured base URL is ${baseUrl}: if the service has moved, run \`scanfeed forget ${name}\`, and the feed starts again at the new URL; if this is another application, give it a feed name or a database schema of its own`,
    );
  }
}

/** The holder of the feed is a process of another schema, and may be alive there. Held until an operator resolves it. */
class ProcessesElsewhere extends Error implements Failure {
  override readonly name = 'ProcessesElsewhere';
  readonly kind = 'processes_elsewhere';
  readonly action = 'hold';
  constructor(feed: string, { schema, home }: Tables, holder: string, itsHome: string) {
    super(
      `the feed ${feed} belongs to the process ${holder}, whose SCANFEED_DATABASE_SCHEMA is ${itsHome}, but here it is ${home}: set the same in all processes; if that process has ended, run UPDATE ${quoted(schema)}.feeds SET lease_holder = NULL WHERE name = '${feed}'`,
    );
  }
}

interface TakenRow {
  readonly epoch: string;
  /** Null: the filters are the same. */
  readonly before: FeedFilters | null;
  readonly database_ms: number;
}

interface StoredRow {
  readonly base_url: string;
  readonly last_commit_at: Date | null;
  readonly lease_holder: string | null;
  readonly lease_home: string | null;
}

/** Creates the access to the leases of feeds. The holder of its lease can write to a feed. */
export function createLeases({ db, tables }: StoreConnection, databaseClock: DatabaseClock): LeaseStore {
  /** Creates a feed that nobody leads, with its starting point and its history pass, unless another process has just created it. */
  const create = async (feed: FeedIdentity) => {
    await sql`
      WITH created AS (
        INSERT INTO ${tables.feeds} (name, base_url, filters, keep_history, start_since, complete_from)
        SELECT ${feed.name}, ${feed.baseUrl}, ${JSON.stringify(feed.filters)}::jsonb, ${feed.keepHistory}, since,
          COALESCE(since, '-infinity')
        FROM (SELECT ${startOf(feed)} AS since) AS start
        ON CONFLICT (name) DO NOTHING
        RETURNING *
      )
      ${feed.start === 'live' ? beginHistoryPass(tables) : sql`SELECT FROM created`}`.execute(db);
  };
  /** Takes a feed if this process may, and applies the settings; undefined if not, or if the row is locked. Raises the epoch each time. */
  const take = async (feed: FeedIdentity, holder: string) => {
    const { rows } = await sql<TakenRow>`
      WITH settings AS (SELECT ${JSON.stringify(feed.filters)}::jsonb AS filters),
      before AS MATERIALIZED (
        SELECT name, feed.filters FROM ${tables.feeds} AS feed
        WHERE name = ${feed.name} AND (base_url = ${feed.baseUrl} OR last_commit_at IS NULL) AND ${mayBeTaken(tables, holder)}
        FOR NO KEY UPDATE SKIP LOCKED
      )
      UPDATE ${tables.feeds} AS feed SET
        ${appliedSettings(tables, feed)},
        lease_holder = ${holder},
        lease_home = ${tables.leaseHome},
        lease_epoch = feed.lease_epoch + 1,
        data_complete_as_of = ${STILL_COMPLETE_AS_OF},
        rate_measured_at = NULL
      FROM before, settings WHERE feed.name = before.name
      RETURNING lease_epoch AS epoch, NULLIF(before.filters, feed.filters) AS before, ${DATABASE_MS}`.execute(db);
    return databaseClock.note(rows[0]);
  };
  /** Returns whether the feed was created. @throws AnotherService, ProcessesElsewhere */
  const exists = async (feed: FeedIdentity) => {
    const { rows } = await sql<StoredRow>`
      SELECT base_url, last_commit_at, lease_holder, lease_home FROM ${tables.feeds} WHERE name = ${feed.name}`.execute(
      db,
    );
    const [stored] = rows;
    if (stored === undefined) return false;
    if (stored.last_commit_at !== null && stored.base_url !== feed.baseUrl)
      throw new AnotherService(feed, stored.base_url);
    if (stored.lease_holder !== null && stored.lease_home !== tables.leaseHome)
      throw new ProcessesElsewhere(feed.name, tables, stored.lease_holder, stored.lease_home ?? tables.schema);
    return true;
  };
  return {
    /** @throws AnotherService, ProcessesElsewhere */
    async acquireLease(feed, holder) {
      let taken = await take(feed, holder);
      if (taken === undefined && !(await exists(feed))) {
        await create(feed);
        taken = await take(feed, holder);
      }
      if (taken === undefined) return null;
      return { feed: feed.name, holder, epoch: Number(taken.epoch), filtersBefore: taken.before };
    },

    async releaseLease({ feed, holder }) {
      await sql`
        UPDATE ${tables.feeds} SET lease_holder = NULL, lease_home = NULL
        WHERE name = ${feed} AND lease_holder = ${holder}`.execute(db);
    },
  };
}

/** For a row `feed`: it has no holder, or its holder is not alive or is this process. */
function mayBeTaken(tables: Tables, holder: string) {
  const holderIsDead = sql`lease_home IS NOT DISTINCT FROM ${tables.leaseHome} AND NOT ${isLed(tables)}`;
  return sql`(lease_holder IS NULL OR lease_holder = ${holder} OR ${holderIsDead})`;
}

/**
 * Assignments to a row `feed`. If the filters include more than before, the cursor is already past some of these runs, so the data is
 * complete only from now on, until a full pass has read them.
 */
function appliedSettings(tables: Tables, { baseUrl, keepHistory }: FeedIdentity) {
  return sql`base_url = ${baseUrl}, -- differs only if nothing was read from the old one
        filters = settings.filters,
        filters_widened_at = CASE WHEN ${ARE_WIDENED}
          -- Not before a pass that has begun, also if the clock was set back since.
          THEN GREATEST(clock_timestamp(), (SELECT max(begun_at) FROM ${tables.passes} AS pass WHERE pass.feed = feed.name))
          ELSE feed.filters_widened_at END,
        complete_from = CASE WHEN ${ARE_WIDENED}
          -- The cursor may be ahead of data_complete_as_of, and the service's clock ahead of the database's.
          THEN GREATEST(feed.complete_from, clock_timestamp(), feed.last_delivered_at)
          ELSE feed.complete_from END,
        keep_history = ${keepHistory}`;
}

/** Condition: something was read already, and the new filters may include runs that the old ones hid. A filter not stored hid nothing. */
const ARE_WIDENED = sql`(
              (feed.cursor IS NOT NULL OR feed.resume_since IS NOT NULL OR feed.data_complete_as_of IS NOT NULL)
              AND EXISTS (SELECT FROM jsonb_each(feed.filters) AS old (filter, setting)
                WHERE (setting = ${sql.lit(JSON.stringify(UNFILTERED))}::jsonb->filter
                  OR setting @> (settings.filters->filter)) IS NOT TRUE))`;

function startOf({ start }: FeedIdentity): RawBuilder<Date | null> {
  if (start === 'beginning') return sql`NULL::timestamptz`;
  if (start === 'now' || start === 'live') return sql`clock_timestamp() - interval ${START_OVERLAP}`;
  return timestamp(start);
}
