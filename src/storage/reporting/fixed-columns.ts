import type { ReportView } from './report-view.js';

/**
 * A column that every typed view has. They precede the columns of the fields, so none can be added later: a view can only be
 * extended at its end.
 */
export interface FixedColumn {
  readonly name: string;
  readonly expression: string;
  readonly comment: string;
}

const run = (name: string, comment: string): FixedColumn => ({ name, expression: `run.${name}`, comment });

const IDENTITY: readonly FixedColumn[] = [
  run('scan_id', 'Identifier of the run (interface 2.1 scanId)'),
  run('revision', 'Its highest revision (interface 2.1 revision)'),
  run('environment', 'prod or test (interface 2.1 environment)'),
  run('partner_name', 'Recognized sender of the document; null: none (interface 2.1 partnerName)'),
  run('partner_test_mode', 'true: file the run for checking only (interface 2.1 partnerTestMode)'),
  run('productive', 'true: the run may be processed productively, as in productive_runs'),
  run('completed_at', 'When the run was completed, service clock (interface 2.1 completedAt)'),
  run(
    'change_seq',
    'Number of the last change of what the views say about the run, in the order of commits; see changes',
  ),
];
const DOCUMENT: readonly FixedColumn[] = [
  ...IDENTITY,
  run('submitted_at', 'When the document was submitted, service clock (interface 2.1 submittedAt)'),
  run('delivered_at', 'When this revision was delivered, service clock (interface 2.1 deliveredAt)'),
  run('synced_at', 'When the row was last written, clock of this database'),
  run('document_type_name', 'Display name of the document type (interface 2.1 documentType.name)'),
  run('file_name', 'Original name of the submitted PDF (interface 2.1 fileName)'),
  run('ocr_confidence', 'Overall recognition confidence as sent; null: none (interface 2.1 ocrConfidence)'),
  run('result_state', 'complete; or pending: the fields have not been loaded yet and are null'),
];
/** Columns after these, for values that do not fit their column and for fields without a column. */
export const UNFIT = 'unfit_fields';
export const OTHER = 'other_fields';

/** Returns the names of the columns that a view has in addition to those of the fields. */
export function fixedColumnNames(view: Pick<ReportView, 'arrays'>): ReadonlySet<string> {
  return new Set([...ownColumns(view).map(({ name }) => name), UNFIT, OTHER]);
}

/** Returns the columns that identify the run and the element of a row. */
export function ownColumns({ arrays }: Pick<ReportView, 'arrays'>): readonly FixedColumn[] {
  if (arrays.length === 0) return DOCUMENT;
  const outer = arrays.slice(0, -1).map((_, index) => ({
    name: `position_${index + 1}`,
    expression: `item_${index + 1}.position`,
    comment: `Position of the enclosing element in its array, from 1; array ${index + 1} counted from the outermost`,
  }));
  const position = {
    name: 'position',
    expression: `item_${arrays.length}.position`,
    comment: 'Position of the element in its array, from 1',
  };
  return [...IDENTITY, ...outer, position];
}
