import { type RawBuilder, sql } from 'kysely';
import type { QuarantineEntry } from '../../sync/ports/index.js';
import { LongParameter } from '../connection/long-parameter.js';
import { isDeleted } from '../tables/retention.js';
import type { Tables } from '../tables/schema.js';
import { identityOf } from './quarantine.js';

/**
 * The parts of the commit that keep the quarantine. They need `held`, and `judged` with the verdicts on the usable entries. They give
 * `quarantined`: a row for each unusable entry, with its state now and whether it is new.
 */
export function unusableEntries(tables: Tables, feed: string, entries: readonly QuarantineEntry[]) {
  return sql`-- The unusable entries. An entry is superseded if its revision or a higher one is stored, or stored by this statement. Each identity
-- is kept once: preferably as an entry that is not stored in any form, else as the original of a repaired one.
unusable AS MATERIALIZED (
  SELECT DISTINCT ON (identity) *
  FROM (
    SELECT *, state = 'open' AND (
      EXISTS (SELECT FROM judged
        WHERE judged.scan_id = entry.scan_id AND judged.revision >= entry.revision AND judged.verdict <> 'deleted')
      OR EXISTS (SELECT FROM ${tables.runs} AS run WHERE run.scan_id = entry.scan_id AND run.revision >= entry.revision)
    ) AS superseded
    FROM jsonb_to_recordset(${quarantineParameter(entries)}::jsonb) AS entry (
      position integer, identity text, scan_id text, revision integer, reason text, detail text, state text
    )
    WHERE NOT EXISTS (SELECT FROM ${tables.deletedRuns} AS deleted
      WHERE deleted.scan_id = entry.scan_id AND ${isDeleted(sql`entry`)})
  ) AS entry
  ORDER BY identity, superseded, state
),

-- Stores the unusable entries, or counts that they were delivered again. A superseded entry is not open.
quarantined AS (
  INSERT INTO ${tables.quarantine} AS known (feed, identity, scan_id, revision, reason, detail, payload, state)
  SELECT ${feed}, identity, scan_id, revision, reason, detail, payload,
    CASE WHEN superseded THEN 'discarded' ELSE state END
  FROM unusable JOIN ${payloadRows(entries)} AS payloads (position, payload) USING (position)
  WHERE EXISTS (SELECT FROM held)
  ON CONFLICT (feed, identity) DO UPDATE SET
    last_seen_at = clock_timestamp(),
    times_seen = known.times_seen + 1,
    -- If the open entry is now stored after a repair, its original is kept.
    (reason, detail, payload) = ROW (
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.reason ELSE known.reason END,
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.detail ELSE known.detail END,
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.payload ELSE known.payload END),
    state = CASE WHEN known.state = 'open' THEN excluded.state ELSE known.state END
  RETURNING state, times_seen = 1 AS is_new
),

-- Closes open entries of earlier pages whose run is now stored.
closed AS (
  UPDATE ${tables.quarantine} AS open SET
    state = CASE WHEN open.revision = judged.revision THEN 'replayed' ELSE 'discarded' END
  FROM judged
  WHERE EXISTS (SELECT FROM held) AND open.state = 'open' AND open.feed = ${feed}
    AND open.scan_id = judged.scan_id AND open.revision <= judged.revision AND judged.verdict <> 'deleted'
    AND open.identity NOT IN (SELECT identity FROM unusable)
)`;
}

/** Returns a JSON array of the unusable entries, by position from 0, without their payloads. */
function quarantineParameter(entries: readonly QuarantineEntry[]): string {
  return JSON.stringify(
    entries.map((entry, position) => {
      const { scanId, revision, reason, detail, state } = entry;
      return { position, identity: identityOf(entry), scan_id: scanId, revision, reason, detail, state };
    }),
  );
}

/**
 * Returns rows of position and payload. Each payload is a separate binary parameter: in JSON it would have to be text, which is a
 * third longer, and PostgreSQL reads at most 256 MiB of text from JSON. So a payload may be as long as a response of the service.
 */
function payloadRows(entries: readonly QuarantineEntry[]): RawBuilder<unknown> {
  if (entries.length === 0) return sql`(SELECT NULL::integer, NULL::bytea WHERE false)`;
  return sql`(VALUES ${sql.join(entries.map(({ payload }, position) => sql`(${position}::integer, ${new LongParameter([payload])}::bytea)`))})`;
}
