import { type RawBuilder, sql } from 'kysely';
import type { LeaseGrant } from '../../sync/ports/index.js';
import { lockHeld } from '../tables/lease-columns.js';
import type { Tables } from '../tables/schema.js';
import { type CommitRow, lag } from './commit-row.js';
import type { CommitSettings } from './commit-settings.js';
import { type CommitContent, storedEntries } from './entries.js';

/** Commits entries without a position: results that were loaded on their own, and trials of entries that are rolled back. */
export function loadedResult(
  tables: Tables,
  settings: CommitSettings,
  lease: LeaseGrant,
  content: CommitContent,
): RawBuilder<CommitRow> {
  return sql<CommitRow>`
WITH locked AS MATERIALIZED (
  ${lockHeld(tables, lease)}
),
held AS (
  SELECT *, 'result' AS stored_by FROM locked
),
${storedEntries(tables, settings, lease.feed, content)}

SELECT held.name, counts.*, false AS end_claimed, held.data_complete_as_of,
  ${lag(sql`held.data_complete_as_of`)}
FROM held CROSS JOIN counts`;
}
