import { type RawBuilder, sql } from 'kysely';
import { hasEscapes, textOf } from '../../core/json/ranges.js';
import type { Slice } from '../../core/json/scan.js';
import { JSON_BYTES } from '../../core/json/tokens.js';
import { type FieldRule, type InterfaceField, OPTIONAL_FIELDS } from '../../core/run-fields.js';
import type { AcceptedEntry, EntryBatch } from '../../sync/ports/index.js';
import { booleanArray, integerArray, jsonbArray, textArray } from '../connection/array-parameter.js';
import { RUN_COLUMNS } from '../tables/run-columns.js';

/** Columns of `received` that describe the entry. `position` is its place on the page. */
export const ENTRY_COLUMNS = ['scan_id', 'revision', ...RUN_COLUMNS, 'pending', 'is_answer'] as const;

/** What follows an element of an array to turn it into the value of its column. */
const CONVERSIONS: Readonly<Record<FieldRule['type'], string>> = {
  code: ' COLLATE "C"',
  text: '',
  'long text': " #>> '{}'",
  number: '::double precision',
  time: '::timestamptz',
  object: '',
};
const FIELD_VALUES = sql.raw(
  OPTIONAL_FIELDS.map(({ column, type }) => `${column}${CONVERSIONS[type]} AS ${column}`).join(',\n    '),
);

/**
 * `received`: one row per entry, with the columns of `runs`. Each column is one array. Values are sent as they were received:
 * `data` and `extra` as JSON, a number as its digits. Texts of any length are sent as JSON too, since only PostgreSQL can
 * unescape them without another copy in memory. The collations are those of the columns: rows are locked in the order of scan ids.
 */
export function receivedEntries(batch: EntryBatch): RawBuilder<unknown> {
  const arrays = arraysOf(batch);
  return sql`received AS (
  SELECT position, scan_id COLLATE "C" AS scan_id, revision, status COLLATE "C" AS status,
    environment COLLATE "C" AS environment, document_type_slug COLLATE "C" AS document_type_slug, document_type_name,
    file_name #>> '{}' AS file_name,
    COALESCE(partner_test_mode, false) AS partner_test_mode,
    CASE WHEN partner_test_mode IS NOT NULL THEN revision END AS test_mode_revision,
    ${FIELD_VALUES},
    markdown_absent, pending COLLATE "C" AS pending, repaired, is_answer, extra
  FROM unnest(${sql.join(Object.values(arrays))}) WITH ORDINALITY
    AS entry (${sql.raw(Object.keys(arrays).join(', '))}, position)
)`;
}

/** Returns the arrays of `received`, by the names of its columns. */
function arraysOf(batch: EntryBatch): Readonly<Record<string, RawBuilder<unknown>>> {
  const flags = (read: (entry: AcceptedEntry) => boolean | null) => sql`${booleanArray(batch, read)}::boolean[]`;
  const texts = (field: InterfaceField) => sql`${textArray(batch, (entry) => textOfField(entry, field))}::text[]`;
  const json = (field: InterfaceField) => sql`${jsonbArray(batch, (entry) => jsonOfField(entry, field))}::jsonb[]`;
  const types = batch.map(documentTypeOf);
  return {
    scan_id: texts('scanId'),
    revision: sql`${integerArray(batch, ({ run }) => run.revision)}::integer[]`,
    status: texts('status'),
    environment: texts('environment'),
    document_type_slug: sql`${textArray(types, ({ slug }) => slug)}::text[]`,
    document_type_name: sql`${textArray(types, ({ name }) => name)}::text[]`,
    file_name: json('fileName'),
    partner_test_mode: flags(testModeOf),
    ...Object.fromEntries(
      OPTIONAL_FIELDS.map(({ field, column, type }) => [
        column,
        (type === 'object' || type === 'long text' ? json : texts)(field),
      ]),
    ),
    markdown_absent: flags(({ markdownAbsent }) => markdownAbsent),
    pending: sql`${textArray(batch, ({ pending }) => pending)}::text[]`,
    repaired: flags(({ repaired }) => repaired),
    is_answer: flags(({ isAnswer }) => isAnswer),
    extra: sql`${jsonbArray(batch, ({ readExtra }) => readExtra?.() ?? null)}::jsonb[]`,
  };
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

type DocumentType = Readonly<Record<'slug' | 'name', string | null>>;

/** A name can be long, so it is only a string while it is sent. Other fields of the document type are not kept in memory. */
function documentTypeOf({ readField }: AcceptedEntry): DocumentType {
  const value = readField('documentType');
  const { slug = null, name = null }: Partial<DocumentType> = value ? JSON.parse(textOf(value.json, value)) : {};
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
