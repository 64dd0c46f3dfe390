/** The columns of `runs` that entries fill, with the SQL that reads each from an `entry` (interface 2.1), in a fixed order. */
const FROM_ENTRY = {
  status: `entry->>'status'`,
  environment: `entry->>'environment'`,
  document_type_slug: `entry->'documentType'->>'slug'`,
  document_type_name: `entry->'documentType'->>'name'`,
  file_name: `entry->>'fileName'`,
  partner_name: `entry->>'partnerName'`,
  partner_test_mode: `COALESCE((entry->>'partnerTestMode')::boolean, false)`,
  ocr_confidence: `(entry->>'ocrConfidence')::double precision`,
  data: `NULLIF(entry->'data', 'null')`,
  failure_reason: `entry->>'failureReason'`,
  error: `entry->>'error'`,
  submitted_at: `(entry->>'submittedAt')::timestamptz`,
  completed_at: `(entry->>'completedAt')::timestamptz`,
  delivered_at: `(entry->>'deliveredAt')::timestamptz`,
  markdown: `entry->>'markdown'`,
} as const;

type EntryColumn = keyof typeof FROM_ENTRY;
/** Columns with a special rule if a revision has several sources; for the others the first value counts. */
type RuledColumn = 'status' | 'environment' | 'file_name' | 'partner_test_mode';
export type FirstValueColumn = Exclude<EntryColumn, RuledColumn>;
export type RunColumn = EntryColumn | 'markdown_absent' | 'repaired' | 'extra';

const ENTRY_COLUMNS = Object.keys(FROM_ENTRY) as readonly EntryColumn[];
const RULED: readonly string[] = ['status', 'environment', 'file_name', 'partner_test_mode'] satisfies RuledColumn[];

/** All columns that depend on the sources of a revision: the values of entries and the findings of the checks. */
export const RUN_COLUMNS: readonly RunColumn[] = [...ENTRY_COLUMNS, 'markdown_absent', 'repaired', 'extra'];
export const FIRST_VALUE_COLUMNS = ENTRY_COLUMNS.filter((name): name is FirstValueColumn => !RULED.includes(name));

/** A select list that reads the columns from an `entry`. */
export const COLUMNS_OF_ENTRY = ENTRY_COLUMNS.map((name) => `${FROM_ENTRY[name]} AS ${name}`).join(',\n    ');
