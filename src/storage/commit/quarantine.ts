import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { QuarantineEntry, QuarantineStore } from '../../sync/ports/index.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { isDeleted } from '../tables/retention.js';
import type { QuarantineState } from '../tables/schema.js';

/** The state of an unusable entry: its state in the feed's quarantine, or `deleted` if its run was deleted. */
export type UnusableEntryState = QuarantineState | 'deleted';

/** Returns the states of the entries that are known already, by identity. */
export async function findQuarantined(
  { db, tables }: StoreConnection,
  feed: string,
  entries: readonly QuarantineEntry[],
): Promise<ReadonlyMap<string, UnusableEntryState>> {
  if (entries.length === 0) return new Map();
  const identities = entries.map(identityOf);
  const scanIds = entries.map(({ scanId }) => scanId);
  const revisions = entries.map(({ revision }) => revision);
  const { rows } = await sql<{ identity: string; state: UnusableEntryState }>`
    SELECT bad.identity, COALESCE(known.state, 'deleted') AS state
    FROM unnest(${identities}::text[], ${scanIds}::text[], ${revisions}::integer[]) AS bad (identity, scan_id, revision)
    LEFT JOIN ${tables.quarantine} AS known ON known.feed = ${feed} AND known.identity = bad.identity
    LEFT JOIN ${tables.deletedRuns} AS deleted ON deleted.scan_id = bad.scan_id
    WHERE known.state IS NOT NULL OR ${isDeleted(sql`bad`)}`.execute(db);
  return new Map(rows.map(({ identity, state }) => [identity, state]));
}

/** Creates the engine's access to the quarantine. */
export function createQuarantine(connection: StoreConnection): QuarantineStore {
  return {
    async notYetQuarantined(feed, entries) {
      const known = await findQuarantined(connection, feed, entries);
      return entries.filter((entry) => !known.has(identityOf(entry)));
    },
  };
}

/** Returns the identity of an entry: two deliveries with the same identity are the same entry. */
export function identityOf({ scanId, revision, payload }: QuarantineEntry): string {
  if (scanId !== null && revision !== null) return `${scanId}#${revision}`;
  return `sha256:${createHash('sha256').update(payload).digest('hex')}`;
}
