import { OPTIONAL_FIELDS } from '../../core/run-fields.js';

/** Columns of `runs` for which the first value counts if a revision has several sources. */
export const FIRST_VALUE_COLUMNS = [
  'document_type_slug',
  'document_type_name',
  ...OPTIONAL_FIELDS.map(({ column }) => column),
] as const;
/** All columns that depend on the sources of a revision: the values of entries and the findings of the checks. */
export const RUN_COLUMNS = [
  'status',
  'environment',
  'file_name',
  'partner_test_mode',
  'test_mode_revision',
  ...FIRST_VALUE_COLUMNS,
  'markdown_absent',
  'repaired',
  'extra',
] as const;
export type RunColumn = (typeof RUN_COLUMNS)[number];
