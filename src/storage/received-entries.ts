import { type RawBuilder, sql } from 'kysely';
import { DOCUMENT_TYPE_FIELDS, INTERFACE_FIELDS } from '../interface-fields.js';
import type { AcceptedEntry, EntryBatch } from '../sync/ports.js';
import { LongParameter } from './long-parameter.js';

/**
 * `received`: one row an entry, columns as in `runs`. The page's bytes are one parameter and PostgreSQL reads the values
 * from it, so that no digit passes through a JavaScript number. `note` says what the checks found, for the few entries
 * that need it.
 */
export function receivedEntries(batch: EntryBatch): RawBuilder<unknown> {
  return sql`
received AS MATERIALIZED (
  SELECT position,
    entry->>'scanId' AS scan_id,
    (entry->'revision')::integer AS revision,
    entry->>'status' AS status,
    entry->>'environment' AS environment,
    entry->'documentType'->>'slug' AS document_type_slug,
    entry->'documentType'->>'name' AS document_type_name,
    entry->>'fileName' AS file_name,
    entry->>'partnerName' AS partner_name,
    COALESCE((entry->>'partnerTestMode')::boolean, false) AS partner_test_mode,
    (entry->>'partnerTestMode') IS NOT NULL AS states_test_mode,
    (entry->>'ocrConfidence')::double precision AS ocr_confidence,
    NULLIF(entry->'data', 'null') AS data,
    entry->>'failureReason' AS failure_reason,
    entry->>'error' AS error,
    (entry->>'submittedAt')::timestamptz AS submitted_at,
    (entry->>'completedAt')::timestamptz AS completed_at,
    (entry->>'deliveredAt')::timestamptz AS delivered_at,
    entry->>'markdown' AS markdown,
    COALESCE(markdown_absent, false) AS markdown_absent,
    pending,
    COALESCE(repaired, false) AS repaired,
    COALESCE(is_answer, false) AS is_answer,
    ${extraOf(batch)} AS extra
  FROM (
    SELECT item.position, item.entry AS original, note.pending, note.repaired, note.hidden, note.markdown_absent, note.is_answer,
      CASE WHEN note.replaced IS NULL THEN item.entry ELSE item.entry || note.replaced END AS entry
    FROM (
      SELECT (page->>'before')::int + item.number AS position, item.entry
      FROM jsonb_array_elements(${jsonbParameter(batch)}::jsonb) AS page (page)
      CROSS JOIN jsonb_array_elements(page #> '{page,items}') WITH ORDINALITY AS item (entry, number)
      LIMIT ${sql.lit(batch.entries.length)} -- as many as there are: what the planner goes by
    ) AS item
    LEFT JOIN jsonb_to_recordset(${notesOf(batch)}::jsonb) AS note (
      position bigint, replaced jsonb, hidden text[], repaired boolean, markdown_absent boolean, is_answer boolean, pending text
    ) ON note.position = item.position
  ) AS item
)`;
}

/** What has no column. Mostly no entry of a page has any, and looking for it in each is not cheap. */
function extraOf({ entries }: EntryBatch): RawBuilder<unknown> {
  if (!entries.some(hasExtra)) return sql`NULL::jsonb`;
  const ofType = sql`(original->'documentType') - ${DOCUMENT_TYPE_FIELDS}::text[]`;
  return sql`NULLIF(
      original - COALESCE(hidden, ${INTERFACE_FIELDS}::text[])
        || CASE WHEN ${ofType} <> '{}' THEN jsonb_build_object('documentType', ${ofType}) ELSE '{}' END,
      '{}')`;
}

function hasExtra({ unknownFields, replaced, normalised }: AcceptedEntry): boolean {
  return unknownFields || Object.keys(replaced).length > normalised.length;
}

/** The version byte that PostgreSQL's binary form of `jsonb` begins with; the JSON text follows. */
const JSONB_VERSION = Buffer.of(1);

/**
 * The pages as a parameter of type `jsonb`, each with the number of entries before it. Bytes go to PostgreSQL in its
 * binary form, without passing through a string.
 */
function jsonbParameter({ pages }: EntryBatch): LongParameter {
  const pieces: Uint8Array[] = [JSONB_VERSION];
  let before = 0;
  for (const { items, json } of pages) {
    pieces.push(Buffer.from(`${pieces.length === 1 ? '[' : '},'}{"before":${before},"page":`), ...json);
    before += items;
  }
  return new LongParameter([...pieces, Buffer.from('}]')]);
}

/** JSON array of what differs from an ordinary entry, by position from 1. */
function notesOf(batch: EntryBatch): string {
  const notes = batch.entries.flatMap(
    ({ replaced, normalised, repaired, markdownAbsent, isAnswer, pending }, index) => {
      const names = Object.keys(replaced);
      if (names.length === 0 && !repaired && !markdownAbsent && !isAnswer && pending === null) return [];
      const kept = names.filter((name) => !normalised.includes(name));
      const hidden = kept.length === 0 ? null : INTERFACE_FIELDS.filter((name) => !kept.includes(name));
      const found = { repaired, markdown_absent: markdownAbsent, is_answer: isAnswer, pending };
      return [{ position: index + 1, ...found, replaced: names.length === 0 ? null : replaced, hidden }];
    },
  );
  return JSON.stringify(notes);
}
