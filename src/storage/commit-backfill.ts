import { type Kysely, sql } from 'kysely';
import type { BackfillCommit, CommitOutcome } from '../sync/ports.js';
import { backfillPosition, fenceOnBackfill } from './backfills.js';
import { commitEntries } from './commit-page.js';
import type { CommitSettings } from './commit-settings.js';
import type { Tables } from './schema.js';

/** Stores a page of a backfill with its own position; `fenced` when the lease was lost, or the backfill is elsewhere or over. */
export function commitBackfill(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  commit: BackfillCommit,
): Promise<CommitOutcome> {
  return commitEntries(
    db,
    tables,
    settings,
    { ...commit, notes: sql`, ${backfillPosition(tables, commit)}` },
    () => sql`WITH fence AS MATERIALIZED (${fenceOnBackfill(tables, commit)})`,
  );
}
