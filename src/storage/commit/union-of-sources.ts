import { type RawBuilder, sql } from 'kysely';
import { FIRST_VALUE_COLUMNS, type RunColumn } from '../tables/run-columns.js';

/*
 * Several sources of one revision become one row: the entries of the feed, whenever they were delivered, and the single-run
 * response (docs/decisions/0006). All rules are in this file. The commit applies them to entries of one page, and to an entry and
 * the stored row. `a` is the earlier source, `b` the later one.
 */

/** A row in SQL: returns its columns. `pending` is the reason why its result is not complete. */
export type Source = (column: string) => RawBuilder<unknown>;

/** An entry, or a row with the same columns. Not by sql.ref: compiling references would take half of the time to build a commit. */
export function entry(alias: string): Source {
  return (column) => sql.raw(`${alias}.${column}`);
}

/** A row of `runs`. */
export function storedRow(alias: string): Source {
  return (column) => sql.raw(`${alias}.${column === 'pending' ? 'pending_reason' : column}`);
}

/** What is known of two sources, as SQL conditions that are cheap to repeat. */
export interface Comparison {
  /** The later source has a lower revision and adds only its test mode, or contradicts the earlier one and adds only that and safer values. */
  readonly contradicts: RawBuilder<unknown>;
  /** The later source states another test mode: see `restatesTestMode`. */
  readonly restates: RawBuilder<unknown>;
  /** Only a lower revision states the resulting test mode, which is true, and no single-run response leaves it out. */
  readonly inDoubt: RawBuilder<unknown>;
}

type Union = Readonly<Record<RunColumn | 'pending', RawBuilder<unknown>>>;

/** Returns each column of the union, for a select list. */
export function unionOf(a: Source, b: Source, comparison: Comparison): Union {
  const { contradicts, restates } = comparison;
  const unless = (value: RawBuilder<unknown>) => sql`CASE WHEN NOT ${contradicts} THEN ${value} END`;
  const firstValues = FIRST_VALUE_COLUMNS.map((name) => [name, sql`COALESCE(${a(name)}, ${unless(b(name))})`]);
  const latest = (name: RunColumn) => sql`CASE WHEN ${restates} THEN ${b(name)} ELSE ${a(name)} END`;
  return {
    ...(Object.fromEntries(firstValues) as Pick<Union, (typeof FIRST_VALUE_COLUMNS)[number]>),
    status: a('status'),
    file_name: a('file_name'),
    environment: sql`CASE WHEN ${b('environment')} = 'test' AND ${b('revision')} >= ${a('revision')} THEN 'test' ELSE ${a('environment')} END`,
    partner_test_mode: latest('partner_test_mode'),
    test_mode_revision: latest('test_mode_revision'),
    markdown_absent: sql`((${a('markdown_absent')} OR ${b('markdown_absent')} AND NOT ${contradicts})
      AND COALESCE(${a('markdown')}, ${unless(b('markdown'))}) IS NULL)`,
    repaired: sql`(${a('repaired')} OR ${b('repaired')} AND NOT ${contradicts})`,
    extra: sql`CASE WHEN ${contradicts} THEN ${a('extra')} ELSE ${unionOfExtra(a('extra'), b('extra'))} END`,
    pending: unionOfPending(a, b, comparison),
  };
}

/**
 * Condition: the later source states the test mode for a higher revision than the earlier one, or as true for the same revision
 * (promise 5). The sources can be of any revisions: the result is the same in any order.
 */
export function restatesTestMode(a: Source, b: Source): RawBuilder<boolean> {
  return sql`COALESCE((${b('test_mode_revision')}, ${b('partner_test_mode')})
    > (COALESCE(${a('test_mode_revision')}, 0), ${a('partner_test_mode')}), false)`;
}

/** Returns why a row of a new revision is pending. */
export function pendingOfNew(source: Source, inDoubt: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`CASE WHEN ${inDoubt} AND ${source('status')} = 'completed' AND ${isInFull(source)} THEN 'test_mode_unknown'
      ELSE ${source('pending')} END`;
}

/** Condition: the later source changes the row. Cheap if the values are the same: only null flags are read. */
export function changes(a: Source, b: Source, comparison: Comparison): RawBuilder<boolean> {
  const { contradicts, restates } = comparison;
  const added = FIRST_VALUE_COLUMNS.map((name) => sql`${a(name)} IS NULL AND ${b(name)} IS NOT NULL`);
  return sql`(
        ${b('environment')} = 'test' AND ${a('environment')} <> 'test'
        OR ${restates}
        OR NOT ${contradicts} AND (
          ${sql.join(added, sql`\n          OR `)}
          OR ${b('markdown_absent')} AND NOT ${a('markdown_absent')} AND ${a('markdown')} IS NULL
          OR ${b('repaired')} AND NOT ${a('repaired')}
          OR ${b('extra')} IS DISTINCT FROM ${a('extra')} AND ${unionOfExtra(a('extra'), b('extra'))} IS DISTINCT FROM ${a('extra')})
        OR ${a('pending')} IS DISTINCT FROM ${unionOfPending(a, b, comparison)})`;
}

/** Condition: two sources disagree about the contents of a run. A missing value is not a disagreement. */
export function contradiction(a: Source, b: Source): RawBuilder<boolean> {
  const differ = (name: string) => sql`${a(name)} <> ${b(name)}`;
  return sql`COALESCE(
        ${differ('status')} OR ${differ('document_type_slug')} OR ${differ('failure_reason')} OR ${differ('error')}
        -- Fast path: usually byte-identical.
        OR NOT ROW(${a('data')})::record OPERATOR(pg_catalog.*=) ROW(${b('data')})::record AND ${differ('data')}, false)`;
}

/** Condition: two sources disagree about the environment or the test mode. The safe value is stored and the conflict is counted. */
export function steeringDiffers(a: Source, b: Source): RawBuilder<boolean> {
  return sql`(${a('environment')} <> ${b('environment')}
        OR COALESCE(${a('test_mode_revision')} = ${b('test_mode_revision')}, false)
          AND ${a('partner_test_mode')} <> ${b('partner_test_mode')})`;
}

/**
 * Pending until a source has the full result, and until the single run was asked for a test mode that is in doubt. It was asked
 * if the row is complete and nothing has restated it.
 */
function unionOfPending(a: Source, b: Source, { contradicts, restates, inDoubt }: Comparison): RawBuilder<unknown> {
  return sql`CASE WHEN ${isInFull(a)} OR ${isInFull(b)} AND NOT ${contradicts}
          THEN CASE WHEN ${inDoubt} AND ${a('status')} = 'completed' AND (${a('pending')} IS NOT NULL OR ${restates})
            THEN 'test_mode_unknown' END
          ELSE COALESCE(${a('pending')}, CASE WHEN NOT ${contradicts} THEN ${b('pending')} END) END`;
}

/** Condition: the source has the full result, perhaps with a test mode in doubt. A completed run needs usable data for that. */
function isInFull(source: Source): RawBuilder<boolean> {
  return sql`(COALESCE(${source('pending')}, 'test_mode_unknown') = 'test_mode_unknown'
          AND (${source('data')} IS NOT NULL OR ${source('status')} = 'failed'))`;
}

/** Merges field by field, including those of the document type. A field that is null in the first is taken from the second. */
function unionOfExtra(a: RawBuilder<unknown>, b: RawBuilder<unknown>): RawBuilder<unknown> {
  const withoutNulls = (fields: RawBuilder<unknown>) =>
    sql`(SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each(${fields}) WHERE value <> 'null')`;
  const merged = (left: RawBuilder<unknown>, right: RawBuilder<unknown>) =>
    sql`${left} || ${right} || ${withoutNulls(left)}`;
  const [typeOfA, typeOfB] = [sql`(${a}->'documentType')`, sql`(${b}->'documentType')`];
  return sql`CASE WHEN ${a} IS NULL OR ${b} IS NULL THEN COALESCE(${a}, ${b})
          ELSE ${merged(a, b)} || CASE WHEN ${typeOfA} IS NULL OR ${typeOfB} IS NULL THEN '{}'
            ELSE jsonb_build_object('documentType', ${merged(typeOfA, typeOfB)}) END END`;
}
