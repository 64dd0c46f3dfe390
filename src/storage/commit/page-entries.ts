import { type RawBuilder, sql } from 'kysely';
import { DOCUMENT_TYPE_FIELDS, INTERFACE_FIELDS } from '../../core/run-fields.js';
import type { AcceptedEntry, EntryBatch } from '../../sync/ports/index.js';
import { COLUMNS_OF_ENTRY, RUN_COLUMNS } from '../schema/run-columns.js';
import type { Tables } from '../schema/schema.js';
import { notesParameter, pagesParameter } from './commit-parameters.js';
import { contradiction, entry, steeringDiffers, unionOf } from './union-of-sources.js';

/**
 * `received`: one row per entry, with the columns of `runs`. The bytes of the page are one parameter from which PostgreSQL reads
 * the values, so no digit passes through a JavaScript number. `note` has the findings of the checks, for the few entries with any.
 */
export function received(batch: EntryBatch): RawBuilder<unknown> {
  return sql`
received AS MATERIALIZED (
  SELECT position,
    entry->>'scanId' AS scan_id,
    (entry->'revision')::integer AS revision,
    ${sql.raw(COLUMNS_OF_ENTRY)},
    (entry->>'partnerTestMode') IS NOT NULL AS states_test_mode,
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
      FROM jsonb_array_elements(${pagesParameter(batch)}::jsonb) AS page (page)
      CROSS JOIN jsonb_array_elements(page #> '{page,items}') WITH ORDINALITY AS item (entry, number)
      LIMIT ${sql.lit(batch.entries.length)} -- limits nothing: tells the planner the number of rows
    ) AS item
    LEFT JOIN jsonb_to_recordset(${notesParameter(batch)}::jsonb) AS note (
      position bigint, replaced jsonb, hidden text[], repaired boolean, markdown_absent boolean, is_answer boolean, pending text
    ) ON note.position = item.position
  ) AS item
)`;
}

/** Returns the fields that have no column. Most pages have none, and searching each entry for them is not cheap. */
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

/** Columns whose values are united from all sources of a revision, in a fixed order. */
const UNION_COLUMNS = [...RUN_COLUMNS, 'pending'] as const;
const UNION = sql.raw([...UNION_COLUMNS, 'states_test_mode'].join(', '));
const STORED_UNION = sql.raw([...RUN_COLUMNS, 'pending_reason', 'true'].join(', '));

/**
 * `candidate`: the highest revision of each scan on the page. `others_…` counts the other entries of the scan on the page. Most
 * pages list each scan once and need no sorting.
 */
export function candidates(tables: Tables, batch: EntryBatch): RawBuilder<unknown> {
  return hasRepeatedScans(batch) ? candidatesOfRepeatedScans(tables) : candidatesWhere(sql``);
}

function candidatesWhere(where: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
candidate AS (
  SELECT scan_id, revision, ${UNION}, false AS united, 0 AS others_same, 0 AS others_stale, 0 AS others_conflicts
  FROM received ${where}
)`;
}

function hasRepeatedScans({ entries }: EntryBatch): boolean {
  return new Set(entries.map(({ run }) => run.scanId)).size < entries.length;
}

/**
 * `candidate` for a page that lists a scan more than once: the union of the entries of its highest revision, in their order, as
 * if each had its own page. If the stored row has the same revision, the union starts with it.
 */
function candidatesOfRepeatedScans(tables: Tables): RawBuilder<unknown> {
  const [united, next] = [entry('united'), entry('next')];
  const union = unionOf(united, next, sql`compared.contradicts`);
  return sql`
repeated AS MATERIALIZED (
  SELECT scan_id, max(revision) AS revision FROM received GROUP BY scan_id HAVING count(*) > 1
),
member AS MATERIALIZED ( -- without values, so that sorting is cheap
  SELECT *, row_number() OVER (PARTITION BY scan_id ORDER BY position) AS number, count(*) OVER (PARTITION BY scan_id) AS members
  FROM (
    SELECT scan_id, position FROM received JOIN repeated USING (scan_id, revision)
    UNION ALL
    SELECT scan_id, 0 FROM ${tables.runs} AS run JOIN repeated USING (scan_id, revision)
  ) AS source
),
others AS MATERIALIZED (
  SELECT scan_id,
    count(*) FILTER (WHERE received.revision = repeated.revision AND NOT is_answer)::int - 1 AS others_same,
    count(*) FILTER (WHERE received.revision < repeated.revision AND NOT is_answer)::int AS others_stale
  FROM received JOIN repeated USING (scan_id) GROUP BY scan_id
),
united AS MATERIALIZED (
  WITH RECURSIVE united AS (
    SELECT scan_id, received.revision, ${UNION}, 0 AS others_conflicts, number, members
    FROM member JOIN received USING (scan_id, position) WHERE number = 1
    UNION ALL
    SELECT scan_id, revision, ${STORED_UNION}, 0, number, members
    FROM member JOIN ${tables.runs} AS run USING (scan_id) WHERE position = 0
    UNION ALL
    SELECT united.scan_id, united.revision, ${sql.join(UNION_COLUMNS.map((name) => union[name]))},
      united.states_test_mode OR next.states_test_mode,
      united.others_conflicts + (compared.contradicts OR ${steeringDiffers(united, next)})::int,
      member.number, united.members
    FROM united
    JOIN member ON member.scan_id = united.scan_id AND member.number = united.number + 1
    JOIN received AS next ON next.position = member.position
    CROSS JOIN LATERAL (SELECT ${contradiction(united, next)} AS contradicts OFFSET 0) AS compared
  )
  SELECT * FROM united WHERE number = members
),
${candidatesWhere(sql`WHERE scan_id NOT IN (SELECT scan_id FROM repeated)
  UNION ALL
  SELECT scan_id, revision, ${UNION}, true, others_same, others_stale, others_conflicts
  FROM united JOIN others USING (scan_id)`)}`;
}
