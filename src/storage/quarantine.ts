import { createHash } from 'node:crypto';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { LeaseGrant, QuarantineEntry } from '../sync/ports.js';
import { isBarred } from './deleted-runs.js';
import type { QuarantineState } from './quarantined-entries.js';
import type { Tables } from './schema.js';

/**
 * Part of the commit statement, after `fence` and `judged`. `quarantined`: this page's entries; one that is seen again
 * makes no second row, and one that a stored revision has overtaken is not open. `settled`: open entries of earlier
 * pages whose run is stored now.
 */
export function quarantineRows(
  tables: Tables,
  lease: LeaseGrant,
  entries: readonly QuarantineEntry[],
): RawBuilder<unknown> {
  return sql`
bad AS MATERIALIZED (
  -- Of one identity: first what is not stored in any form, then the original of what is.
  SELECT DISTINCT ON (identity) *
  FROM (
    SELECT *, state = 'open' AND (
      EXISTS (SELECT FROM judged
        WHERE judged.scan_id = bad.scan_id AND judged.revision >= bad.revision AND judged.verdict <> 'barred')
      OR EXISTS (SELECT FROM ${tables.runs} AS run WHERE run.scan_id = bad.scan_id AND run.revision >= bad.revision)
    ) AS overtaken
    FROM jsonb_to_recordset(${rowsOf(entries)}::jsonb) AS bad (
      position integer, identity text, scan_id text, revision integer, reason text, detail text, state text
    )
    WHERE NOT EXISTS (SELECT FROM ${tables.deletedRuns} AS deleted
      WHERE deleted.scan_id = bad.scan_id AND ${isBarred(sql`bad`)})
  ) AS bad
  ORDER BY identity, overtaken, state
),
quarantined AS (
  INSERT INTO ${tables.quarantine} AS known (feed, identity, scan_id, revision, reason, detail, payload, state)
  SELECT ${lease.feed}, identity, scan_id, revision, reason, detail, sent.payload,
    CASE WHEN overtaken THEN 'discarded' ELSE state END
  FROM bad JOIN ${payloadsOf(entries)} AS sent (position, payload) USING (position)
  WHERE EXISTS (SELECT FROM fence)
  ON CONFLICT (feed, identity) DO UPDATE SET
    last_seen_at = clock_timestamp(),
    times_seen = known.times_seen + 1,
    -- What was bad is stored now, repaired: this is its original.
    (reason, detail, payload) = ROW (
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.reason ELSE known.reason END,
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.detail ELSE known.detail END,
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.payload ELSE known.payload END),
    state = CASE WHEN known.state = 'open' THEN excluded.state ELSE known.state END
  RETURNING state
),
settled AS (
  UPDATE ${tables.quarantine} AS open SET
    state = CASE WHEN open.revision = judged.revision THEN 'replayed' ELSE 'discarded' END
  FROM judged
  WHERE EXISTS (SELECT FROM fence) AND open.state = 'open' AND open.feed = ${lease.feed}
    AND open.scan_id = judged.scan_id AND open.revision <= judged.revision AND judged.verdict <> 'barred'
    AND open.identity NOT IN (SELECT identity FROM bad)
)`;
}

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

function rowsOf(entries: readonly QuarantineEntry[]): string {
  return JSON.stringify(
    entries.map((entry, position) => {
      const { scanId, revision, reason, detail, state } = entry;
      return { position, identity: identityOf(entry), scan_id: scanId, revision, reason, detail, state };
    }),
  );
}

/**
 * Each payload is a binary parameter of its own: in JSON it would have to be text, a third longer, and PostgreSQL reads no
 * text over 256 MiB from it. So a payload may be as long as one answer of the service.
 */
function payloadsOf(entries: readonly QuarantineEntry[]): RawBuilder<unknown> {
  if (entries.length === 0) return sql`(SELECT NULL::integer, NULL::bytea WHERE false)`;
  return sql`(VALUES ${sql.join(entries.map(({ payload }, position) => sql`(${position}::integer, ${bytesOf(payload)}::bytea)`))})`;
}

/** The driver sends a Buffer as it is. */
function bytesOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** What makes a delivery of an entry the same as an earlier one. */
export function identityOf({ scanId, revision, payload }: QuarantineEntry): string {
  if (scanId !== null && revision !== null) return `${scanId}#${revision}`;
  return `sha256:${createHash('sha256').update(payload).digest('hex')}`;
}
