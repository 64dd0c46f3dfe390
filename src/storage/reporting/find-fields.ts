import { type RawBuilder, sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import type { Tables } from '../tables/schema.js';
import { type ColumnType, REPORT_LIMITS } from './report-view.js';

/**
 * The kind of a value in documents. `row`: the document or element itself; `object`: one whose fields are found too; `array`: an
 * array whose elements are not all objects; `objects`: an array of objects only.
 */
export type SeenKind = ColumnType | 'row' | 'object' | 'array' | 'objects';

/** A field of documents, with the number of values of one kind, and the least number of documents that contain them. */
export interface SeenField {
  readonly slug: string;
  readonly arrays: readonly (readonly string[])[];
  readonly path: readonly string[];
  readonly kind: SeenKind;
  readonly count: number;
  readonly documents: number;
}

/** Maximum number of distinct fields per view, and in total. If documents keep adding keys, the most frequent ones are used. */
const FIELDS_OF_VIEW = 2_000;
const FIELDS = 50_000;

/**
 * Limits of a batch: number of runs, and stored bytes of their documents. Searching a batch of ordinary documents, of less
 * than 2 KB each, takes PostgreSQL about 45 ms, which fits into the time slice while a history is read.
 */
export const BATCH = { runs: 250, bytes: 2 ** 20 };

/** Returns a subquery with the first runs of a query, in its order, limited in runs and in stored bytes. */
const withinBytes = (query: RawBuilder<unknown>, order: RawBuilder<unknown>, runs = BATCH.runs) => sql`(
    SELECT * FROM (
      SELECT *, sum(COALESCE(pg_column_size(data), 0)) OVER
        (ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM (${query} ORDER BY ${order} LIMIT ${runs}) AS run
    ) AS run
    WHERE COALESCE(before, 0) < ${BATCH.bytes})`;

/** Returns the last change of the next batch, which is limited in runs and in stored bytes; null if there are no more changes. */
export async function endOfBatch(
  { db, tables }: StoreConnection,
  after: string,
  runs = BATCH.runs,
): Promise<string | null> {
  const next = sql`SELECT change_seq, data FROM ${tables.runs} WHERE change_seq > ${after}::bigint`;
  const { rows } = await sql<{ last: string | null }>`
    SELECT max(change_seq)::text AS last FROM ${withinBytes(next, sql`change_seq`, runs)} AS batch`.execute(db);
  return rows[0]?.last ?? null;
}

/** Returns an array with the ids of the latest completed runs of a document type, limited like a batch. */
export function latestRuns(tables: Tables, slug: string): RawBuilder<readonly string[]> {
  const runs = sql`SELECT scan_id, completed_at, data FROM ${tables.runs}
    WHERE document_type_slug = ${slug} AND status = 'completed' AND completed_at`;
  // Two queries, since the index has runs without a time first.
  const latest = sql`(${runs} IS NOT NULL ORDER BY completed_at DESC LIMIT ${BATCH.runs})
    UNION ALL (${runs} IS NULL LIMIT ${BATCH.runs})`;
  return sql`ARRAY(SELECT scan_id FROM ${withinBytes(latest, sql`completed_at DESC NULLS LAST`)} AS latest)`;
}

/**
 * Returns the fields of documents. Values do not leave PostgreSQL.
 * @param condition the condition on their runs
 */
export async function findFields(
  { db, tables }: StoreConnection,
  condition: RawBuilder<unknown>,
): Promise<readonly SeenField[]> {
  const { keyBytes, depth, arrays } = REPORT_LIMITS;
  const f = (name: string) => sql.id(tables.schema, name);
  const members = sql`jsonb_each(
    CASE WHEN jsonb_typeof(holder.value) = 'object' AND cardinality(holder.path) < ${depth} THEN holder.value END)`;
  const { rows } = await sql<SeenField>`
    WITH RECURSIVE holder AS ( -- documents and their nested objects and arrays: about a tenth of their values
      SELECT 1::bigint << (change_seq % 63)::int AS run_bit,
        document_type_slug AS slug, '[]'::jsonb AS arrays, '{}'::text[] COLLATE "C" AS path, data AS value
      FROM ${tables.runs}
      WHERE ${condition}
        AND status = 'completed' AND document_type_slug IS NOT NULL AND data IS NOT NULL
      UNION ALL
      SELECT holder.run_bit, holder.slug, child.arrays, child.path, child.value
      FROM holder CROSS JOIN LATERAL (
        SELECT holder.arrays, holder.path || member.key AS path, member.value
        FROM ${members} AS member
        WHERE octet_length(member.key) <= ${keyBytes} AND jsonb_typeof(member.value) IN ('object', 'array')
        UNION ALL
        SELECT holder.arrays || jsonb_build_array(holder.path), '{}', element.value
        FROM jsonb_array_elements(CASE WHEN jsonb_typeof(holder.value) = 'array'
          AND jsonb_array_length(holder.arrays) < ${arrays} THEN holder.value END) AS element
        WHERE jsonb_typeof(element.value) = 'object'
      ) AS child
    ),
    node AS (
      SELECT run_bit, slug, arrays, path, value FROM holder
      UNION ALL
      SELECT holder.run_bit, holder.slug, holder.arrays, holder.path || member.key, member.value
      FROM holder CROSS JOIN LATERAL ${members} AS member
      WHERE octet_length(member.key) <= ${keyBytes} AND jsonb_typeof(member.value) NOT IN ('object', 'array')
    ),
    seen AS (
      SELECT run_bit, slug, arrays, path,
        CASE jsonb_typeof(value)
          WHEN 'number' THEN 'number'
          WHEN 'boolean' THEN 'boolean'
          WHEN 'string' THEN CASE
            WHEN value = '""' THEN NULL
            WHEN value #>> '{}' NOT LIKE '____-__-__%' THEN 'text' -- quickly, for most of them
            WHEN ${f('as_date')}(value) IS NOT NULL THEN 'date'
            WHEN ${f('as_timestamp')}(value) IS NOT NULL THEN 'timestamp'
            ELSE 'text' END
          WHEN 'array' THEN CASE
            WHEN value = '[]' THEN NULL
            WHEN jsonb_path_exists(value, 'strict $[*] ? (@.type() != "object")') THEN 'array'
            ELSE 'objects' END
          WHEN 'object' THEN CASE
            WHEN path = '{}' THEN 'row'
            WHEN value = '{}' THEN NULL
            WHEN cardinality(path) = ${depth} THEN 'json'
            ELSE 'object' END
        END AS kind
      FROM node
      OFFSET 0 -- keeps PostgreSQL from computing each kind twice
    )
    SELECT slug, arrays, path, kind, count, documents
    FROM (
      SELECT slug, arrays, path, kind, count(*)::int AS count,
        -- Only a few matter, and counting distinct ones would need a sort.
        bit_count(bit_or(run_bit)::bit(64))::int AS documents,
        row_number() OVER (PARTITION BY slug, arrays ORDER BY count(*) DESC, path, kind) AS place
      FROM seen WHERE kind IS NOT NULL
      GROUP BY slug, arrays, path, kind
    ) AS field
    WHERE place <= ${FIELDS_OF_VIEW}
    ORDER BY jsonb_array_length(arrays), place, count DESC, slug, arrays, path, kind -- so that each view keeps its share
    LIMIT ${FIELDS}`.execute(db);
  return rows;
}
