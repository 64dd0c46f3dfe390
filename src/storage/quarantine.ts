import { createHash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { QuarantineEntry } from '../sync/ports.js';
import { isBarred } from './deleted-runs.js';
import type { QuarantineState } from './quarantined-entries.js';
import type { Tables } from './schema.js';

/** Where an entry that cannot be stored is: in the feed's quarantine, or with the runs that were removed. */
export type Whereabouts = QuarantineState | 'deleted';

/** Of the entries that are known already, by identity. */
export async function findQuarantined(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  entries: readonly QuarantineEntry[],
): Promise<ReadonlyMap<string, Whereabouts>> {
  if (entries.length === 0) return new Map();
  const identities = entries.map(identityOf);
  const scanIds = entries.map(({ scanId }) => scanId);
  const revisions = entries.map(({ revision }) => revision);
  const { rows } = await sql<{ identity: string; state: Whereabouts }>`
    SELECT bad.identity, COALESCE(known.state, 'deleted') AS state
    FROM unnest(${identities}::text[], ${scanIds}::text[], ${revisions}::integer[]) AS bad (identity, scan_id, revision)
    LEFT JOIN ${tables.quarantine} AS known ON known.feed = ${feed} AND known.identity = bad.identity
    LEFT JOIN ${tables.deletedRuns} AS deleted ON deleted.scan_id = bad.scan_id
    WHERE known.state IS NOT NULL OR ${isBarred(sql`bad`)}`.execute(db);
  return new Map(rows.map(({ identity, state }) => [identity, state]));
}

/** Those of the entries that are not in the feed's quarantine yet, in whatever state, and may come into it. */
export async function notYetQuarantined(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  entries: readonly QuarantineEntry[],
): Promise<readonly QuarantineEntry[]> {
  const known = await findQuarantined(db, tables, feed, entries);
  return entries.filter((entry) => !known.has(identityOf(entry)));
}

/** What makes a delivery of an entry the same as an earlier one. */
export function identityOf({ scanId, revision, payload }: QuarantineEntry): string {
  if (scanId !== null && revision !== null) return `${scanId}#${revision}`;
  return `sha256:${createHash('sha256').update(payload).digest('hex')}`;
}
