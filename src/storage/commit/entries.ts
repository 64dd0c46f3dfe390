import { sql } from 'kysely';
import type { PageContent } from '../../sync/ports/index.js';
import type { Tables } from '../tables/schema.js';
import type { CommitSettings } from './commit-row.js';
import { judgedEntries } from './judged-entries.js';
import { receivedEntries } from './received-entries.js';
import { unusableEntries } from './unusable-entries.js';
import { writtenRuns } from './written-runs.js';

/**
 * The entries of every commit statement. `test/storage/commit/statements/feed-page.sql` shows them as PostgreSQL receives them, to be
 * read from top to bottom. All parts see the tables as they were before the statement, and each other's writes only as returned rows.
 *
 * They need `held`: one row with `stored_by` (for the column of `runs`) if the commit can write, else none. They give `counts`, which
 * has a row if `held` has one (without entries always), and fails the statement if an entry could not be written as judged.
 *
 * PostgreSQL runs a part when another one reads it. `judged` and the parts before it do not read `held`, so they can run while the
 * previous commit has the lock. The parts that write read `held`. `restored` and `closed`, which no part reads, run at the end.
 */
export function storedEntries(tables: Tables, settings: CommitSettings, feed: string, content: PageContent) {
  const { batch, quarantine } = content;
  if (batch.length === 0 && quarantine.length === 0) return NO_ENTRIES;
  return sql`${receivedEntries(batch)},

${judgedEntries(tables, settings.keptDays, batch)},

${writtenRuns(tables, feed, settings.pendingRetryMs)},

${unusableEntries(tables, feed, quarantine)},

-- What the parts above did. The last column fails the statement.
counts AS MATERIALIZED (
  SELECT
    (SELECT count(*)::int FROM stored WHERE inserted) AS inserted,
    (SELECT count(*)::int FROM stored WHERE NOT inserted) + (SELECT count(*)::int FROM filled) AS updated,
    (SELECT count(*)::int FROM filled) AS filled,
    judged_counts.same AS unchanged, judged_counts.stale, judged_counts.conflicts,
    (SELECT count(*)::int FROM quarantined WHERE state = 'open') AS quarantined,
    (SELECT json_agg(scan_id) FROM stored) AS stored,
    EXISTS (SELECT FROM stored) OR EXISTS (SELECT FROM filled)
      OR EXISTS (SELECT FROM quarantined WHERE is_new AND state <> 'repaired') AS brings_new,
    CASE WHEN EXISTS (SELECT FROM overtaken) THEN ${tables.refuseOvertaken} END AS overtaken
  FROM held CROSS JOIN (
    SELECT COALESCE(sum((verdict = 'same')::int + others_same), 0)::int AS same,
      COALESCE(sum((verdict IN ('stale', 'deleted'))::int + others_stale), 0)::int AS stale,
      COALESCE(sum(conflicting::int + others_conflicts), 0)::int AS conflicts
    FROM judged
  ) AS judged_counts
)`;
}

/** `counts` of a commit without entries. It has few columns: most commits of a feed at its end are of this kind. */
export const NO_ENTRIES = sql`counts AS (
  SELECT 0 AS inserted, 0 AS updated, false AS brings_new
)`;
