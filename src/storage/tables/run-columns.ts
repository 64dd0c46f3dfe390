import { type RawBuilder, sql } from 'kysely';
import { OPTIONAL_FIELDS } from '../../core/run-fields.js';

/** Columns of `runs` for which the first value counts if a revision has several sources. */
export const FIRST_VALUE_COLUMNS = [
  'document_type_slug',
  'document_type_name',
  ...OPTIONAL_FIELDS.map(({ column }) => column),
] as const;
/** Columns of `runs` that only sources of the stored revision fill: the values of entries and the findings of the checks. */
export const CONTENT_COLUMNS = [
  'status',
  'environment',
  'file_name',
  ...FIRST_VALUE_COLUMNS,
  'markdown_absent',
  'repaired',
  'extra',
] as const;
/** All columns of `runs` that entries fill. The test mode can also be stated by an entry of another revision. */
export const RUN_COLUMNS = [...CONTENT_COLUMNS, 'partner_test_mode', 'test_mode_revision'] as const;
export type RunColumn = (typeof RUN_COLUMNS)[number];

/** Returns a list of columns, qualified by the alias of their row if there is one. */
export function columnList(names: readonly string[], alias?: string): RawBuilder<unknown> {
  return sql.raw(names.map((name) => (alias === undefined ? name : `${alias}.${name}`)).join(', '));
}
