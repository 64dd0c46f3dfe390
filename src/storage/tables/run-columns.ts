/** The columns of `runs` that an entry or a single-run answer fills (interface 2.1), in a fixed order. */
const ENTRY_COLUMNS = [
  'status',
  'environment',
  'document_type_slug',
  'document_type_name',
  'file_name',
  'partner_name',
  'partner_test_mode',
  'test_mode_revision',
  'ocr_confidence',
  'data',
  'failure_reason',
  'error',
  'submitted_at',
  'completed_at',
  'delivered_at',
  'markdown',
] as const;

/** Columns with a special rule if a revision has several sources; for the others the first value counts. */
const RULED_COLUMNS = ['status', 'environment', 'file_name', 'partner_test_mode', 'test_mode_revision'] as const;
const RULED: ReadonlySet<string> = new Set(RULED_COLUMNS);

type EntryColumn = (typeof ENTRY_COLUMNS)[number];
export type FirstValueColumn = Exclude<EntryColumn, (typeof RULED_COLUMNS)[number]>;
export type RunColumn = EntryColumn | 'markdown_absent' | 'repaired' | 'extra';

/** All columns that depend on the sources of a revision: the values of entries and the findings of the checks. */
export const RUN_COLUMNS: readonly RunColumn[] = [...ENTRY_COLUMNS, 'markdown_absent', 'repaired', 'extra'];
export const FIRST_VALUE_COLUMNS = ENTRY_COLUMNS.filter((name): name is FirstValueColumn => !RULED.has(name));
