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
  run('scan_id', 'Identifier of the run: the scanId that the service returned for the submission'),
  run('revision', 'Its highest revision'),
  run('environment', 'prod; or test: a trial, to be left out of figures'),
  run('partner_name', 'Recognized sender of the document; null: none'),
  run(
    'partner_test_mode',
    'true: the partner is in test mode for this document type; file the run for checking only, do not process it',
  ),
  run('productive', 'true: the run is to be processed productively, as in productive_runs'),
  run('completed_at', 'When the run was completed, service clock'),
  run('change_seq', 'Number of the last change that the views show of the run, in the order of commits; see changes'),
];
const DOCUMENT: readonly FixedColumn[] = [
  ...IDENTITY,
  run('submitted_at', 'When the document was submitted, service clock'),
  run('delivered_at', 'When this revision was delivered, service clock'),
  run('synced_at', 'When the row was last written, clock of this database'),
  run('document_type_name', 'Display name of the document type; null: none'),
  run('file_name', 'Original name of the submitted PDF'),
  run(
    'ocr_confidence',
    'Overall recognition confidence as sent, on a scale that the service does not define; null: none was sent',
  ),
  run('result_state', 'complete; or pending: the fields are null until they are loaded, or the test mode is unknown'),
];
const HISTORY: readonly FixedColumn[] = [
  run('superseded_at', 'When the higher revision was stored, clock of this database'),
  ...DOCUMENT.filter(({ name }) => name !== 'productive').map((column) => {
    if (column.name === 'revision') return run('revision', 'The revision that was replaced');
    if (column.name !== 'change_seq') return column;
    return run('change_seq', 'Number of the last change of this revision, before it was replaced');
  }),
];
/** Columns after these, for values that do not fit their column and for fields without a column. */
export const UNFIT = 'unfit_fields';
export const OTHER = 'other_fields';

/** Returns the names that fields must not have: those of the other columns of a view, and of its history. */
export function fixedColumnNames({ arrays }: Pick<ReportView, 'arrays'>): ReadonlySet<string> {
  const own = ownColumns({ arrays, history: false });
  const all = arrays.length === 0 ? [...own, ...HISTORY] : own;
  return new Set([...all.map(({ name }) => name), UNFIT, OTHER]);
}

/** Returns the columns that identify the run and the element of a row. */
export function ownColumns({ arrays, history }: Pick<ReportView, 'arrays' | 'history'>): readonly FixedColumn[] {
  if (history) return HISTORY;
  if (arrays.length === 0) return DOCUMENT;
  const outer = arrays.slice(0, -1).map((_, index) => ({
    name: `position_${index + 1}`,
    expression: `item_${index + 1}.position`,
    comment: `Position, from 1, of the enclosing element in array ${index + 1}, counted from the outermost array`,
  }));
  const position = {
    name: 'position',
    expression: `item_${arrays.length}.position`,
    comment: 'Position of the element in its array, from 1',
  };
  return [...IDENTITY, ...outer, position];
}
