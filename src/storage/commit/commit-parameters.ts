import { type RawBuilder, sql } from 'kysely';
import { hasEscapes, textOf } from '../../core/json/ranges.js';
import type { Slice } from '../../core/json/scan.js';
import { JSON_BYTES } from '../../core/json/tokens.js';
import type { InterfaceField } from '../../core/run-fields.js';
import type { AcceptedEntry, EntryBatch, QuarantineEntry } from '../../sync/ports/index.js';
import { type ArrayElement, booleanArray, integerArray, jsonbArray, textArray } from '../connection/array-parameter.js';
import { LongParameter } from '../connection/long-parameter.js';
import { identityOf } from './quarantine.js';

/**
 * `received`: one row per entry, with the columns of `runs`. Each column is one array. Values are sent as they were received:
 * `data` and `extra` as JSON, a number as its digits. Texts of any length are sent as JSON too, since only PostgreSQL can
 * unescape them without another copy in memory. The collations are those of the columns: rows are locked in the order of scan ids.
 */
export function received(batch: EntryBatch): RawBuilder<unknown> {
  const texts = (read: (entry: AcceptedEntry) => ArrayElement) => textArray(batch, read);
  const fields = (field: InterfaceField) => texts((entry) => textOfField(entry, field));
  const json = (field: InterfaceField) => jsonbArray(batch, (entry) => jsonOfField(entry, field));
  const flags = (read: (entry: AcceptedEntry) => boolean | null) => booleanArray(batch, read);
  const types = batch.map(documentTypeOf);
  return sql`
received AS (
  SELECT position, scan_id COLLATE "C" AS scan_id, revision, status COLLATE "C" AS status,
    environment COLLATE "C" AS environment, document_type_slug COLLATE "C" AS document_type_slug, document_type_name,
    file_name #>> '{}' AS file_name,
    partner_name,
    COALESCE(partner_test_mode, false) AS partner_test_mode,
    ocr_confidence::double precision AS ocr_confidence,
    data, failure_reason COLLATE "C" AS failure_reason,
    error #>> '{}' AS error,
    submitted_at::timestamptz AS submitted_at,
    completed_at::timestamptz AS completed_at,
    delivered_at::timestamptz AS delivered_at,
    markdown #>> '{}' AS markdown,
    CASE WHEN partner_test_mode IS NOT NULL THEN revision END AS test_mode_revision,
    markdown_absent, pending COLLATE "C" AS pending, repaired, is_answer, extra
  FROM unnest(
    ${fields('scanId')}::text[],
    ${integerArray(batch, ({ run }) => run.revision)}::integer[],
    ${fields('status')}::text[],
    ${fields('environment')}::text[],
    ${textArray(types, ({ slug }) => slug)}::text[],
    ${textArray(types, ({ name }) => name)}::text[],
    ${json('fileName')}::jsonb[],
    ${fields('partnerName')}::text[],
    ${flags(testModeOf)}::boolean[],
    ${fields('ocrConfidence')}::text[],
    ${json('data')}::jsonb[],
    ${fields('failureReason')}::text[],
    ${json('error')}::jsonb[],
    ${fields('submittedAt')}::text[],
    ${fields('completedAt')}::text[],
    ${fields('deliveredAt')}::text[],
    ${json('markdown')}::jsonb[],
    ${flags(({ markdownAbsent }) => markdownAbsent)}::boolean[],
    ${texts(({ pending }) => pending)}::text[],
    ${flags(({ repaired }) => repaired)}::boolean[],
    ${flags(({ isAnswer }) => isAnswer)}::boolean[],
    ${jsonbArray(batch, ({ readExtra }) => readExtra?.() ?? null)}::jsonb[]
  ) WITH ORDINALITY AS entry (
    scan_id, revision, status, environment, document_type_slug, document_type_name, file_name, partner_name,
    partner_test_mode, ocr_confidence, data, failure_reason, error, submitted_at, completed_at, delivered_at, markdown,
    markdown_absent, pending, repaired, is_answer, extra, position
  )
)`;
}

/** Returns the JSON of a field; null if it is absent, null or invalid. */
function jsonOfField({ readField, replaced }: AcceptedEntry, field: InterfaceField): Slice | null {
  return field in replaced ? null : readField(field);
}

/** Returns the text of a field that is a text or a number. */
function textOfField({ readField, replaced }: AcceptedEntry, field: InterfaceField): string | Slice | null {
  const replacement = replaced[field];
  if (replacement !== undefined) return replacement as string | null;
  const value = readField(field);
  if (value === null || value.json[value.start] !== QUOTE) return value;
  const { json, start, end } = value;
  return hasEscapes(json, value)
    ? (JSON.parse(textOf(json, value)) as string)
    : { json, start: start + 1, end: end - 1 };
}

interface DocumentType {
  readonly slug: string | null;
  readonly name: string | null;
}

/** A name can be long, so it is only a string while it is sent. */
function documentTypeOf({ readField }: AcceptedEntry): DocumentType {
  const value = readField('documentType');
  const { slug = null, name = null }: Partial<DocumentType> =
    value === null ? {} : JSON.parse(textOf(value.json, value));
  return { slug, name };
}

/** Null: the entry does not state it. */
function testModeOf({ readField, replaced }: AcceptedEntry): boolean | null {
  const { partnerTestMode } = replaced;
  if (partnerTestMode !== undefined) return partnerTestMode as boolean;
  const value = readField('partnerTestMode');
  return value && value.json[value.start] === TRUE;
}

const { QUOTE } = JSON_BYTES;
/** First byte of `true`. */
const TRUE = 0x74;

/** Returns a JSON array of the unusable entries, by position from 0, without their payloads. */
export function quarantineParameter(entries: readonly QuarantineEntry[]): string {
  return JSON.stringify(
    entries.map((entry, position) => {
      const { scanId, revision, reason, detail, state } = entry;
      return { position, identity: identityOf(entry), scan_id: scanId, revision, reason, detail, state };
    }),
  );
}

/**
 * Returns rows of position and payload. Each payload is a separate binary parameter: in JSON it would have to be text, which is a
 * third longer, and PostgreSQL reads at most 256 MiB of text from JSON. So a payload may be as long as an answer of the service.
 */
export function payloadRows(entries: readonly QuarantineEntry[]): RawBuilder<unknown> {
  if (entries.length === 0) return sql`(SELECT NULL::integer, NULL::bytea WHERE false)`;
  return sql`(VALUES ${sql.join(entries.map(({ payload }, position) => sql`(${position}::integer, ${new LongParameter([payload])}::bytea)`))})`;
}
