import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseView, FeedRow } from './database-view.js';

/** Maximum time in which a feed may have no leader while processes are killed, milliseconds. */
const MOST_UNLED_MS = 20_000;
const CHECK_INTERVAL_MS = 100;

/** Watches who leads the feeds, and with which lease they are committed. */
export interface Leadership {
  /** The longest time in which a feed had no leader so far, milliseconds. */
  longestUnledMs(): number;
  /** Returns what was found against promise 6 since the last call. */
  problems(): Promise<readonly string[]>;
  /** Ends the watch. Until then the view must be open. */
  stop(): Promise<void>;
}

/** Notes the lease of every commit, by a trigger. Waits until the tables exist. */
export async function watchLeadership(view: DatabaseView, feeds: number, signal: AbortSignal): Promise<Leadership> {
  await view.rows(NOTE_COMMITS);
  const unledSince = new Map<string, number>();
  const late = new Set<string>();
  let longestUnledMs = 0;
  const look = async () => {
    const rows = await view.feeds();
    const now = performance.now();
    for (const { name, holder } of rows) {
      const since = unledSince.get(name) ?? now;
      longestUnledMs = Math.max(longestUnledMs, now - since);
      if (now - since > MOST_UNLED_MS) late.add(name);
      if (holder === null) unledSince.set(name, since);
      else unledSince.delete(name);
    }
  };
  const stopped = new AbortController();
  const until = AbortSignal.any([signal, stopped.signal]);
  const watch = async () => {
    const allLed = (rows: readonly FeedRow[]) => rows.length === feeds && rows.every(({ holder }) => holder !== null);
    await view.feedsUntil((rows) => until.aborted || allLed(rows));
    while (!until.aborted) {
      await look();
      await sleep(CHECK_INTERVAL_MS, undefined, { signal: until }).catch(() => {});
    }
  };
  const watching = watch().catch(() => {}); // the signal has aborted
  return {
    stop: () => {
      stopped.abort();
      return watching;
    },
    longestUnledMs: () => longestUnledMs,
    problems: async () => {
      const twice = await view.rows<{ feed: string }>(LED_TWICE);
      const problems = [
        ...[...late].map((feed) => `${feed} had no leader for more than ${MOST_UNLED_MS / 1000} s`),
        ...twice.map(({ feed }) => `${feed} was committed to by two leaders at the same time`),
      ];
      late.clear();
      return problems;
    },
  };
}

/** The row of the feed is locked meanwhile, so `id` is in the order of the commits of a feed. */
const NOTE_COMMITS = `
  CREATE TABLE noted_commits (id bigserial, feed text, epoch bigint, holder text);
  CREATE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO noted_commits (feed, epoch, holder) VALUES (NEW.name, NEW.lease_epoch, NEW.lease_holder);
    RETURN NULL;
  END $$;
  CREATE TRIGGER note_commit AFTER UPDATE OF last_commit_at ON scanfeed.feeds
    FOR EACH ROW EXECUTE FUNCTION note_commit()`;

/** Feeds with a commit of an earlier lease after one of a later lease, or with two holders of the same lease. */
const LED_TWICE = `
  SELECT DISTINCT feed FROM (
    SELECT feed, epoch, holder, lag(epoch) OVER earlier AS epoch_before, lag(holder) OVER earlier AS holder_before
    FROM noted_commits WINDOW earlier AS (PARTITION BY feed ORDER BY id)
  ) AS noted
  WHERE epoch < epoch_before OR (epoch = epoch_before AND holder IS DISTINCT FROM holder_before)`;
