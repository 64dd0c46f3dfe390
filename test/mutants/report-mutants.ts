// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are those of the program's own templates
import { type Mutant, type Patch, patch } from './mutant.js';

const reports = (name: string, ...patches: readonly Patch[]): Mutant => ({ name, tests: 'reports', patches });

/** Bugs of what reports read, and of what is removed. */
export const REPORT_MUTANTS: readonly Mutant[] = [
  reports(
    'an erased run is stored again',
    patch('src/storage/commit/judged-entries.ts', "WHEN ${isDeleted(sql`candidate`, keptDays)} THEN 'deleted'\n", ''),
  ),
  reports(
    'a page that was judged before an erasure lands after it',
    patch('src/storage/runs/deleted-runs.ts', 'lease_epoch + 1 + ceil(random() * 1000000)', 'lease_epoch'),
  ),
  reports(
    'a run ceases to be productive without a new number',
    patch('migrations/0001_runs_and_feeds.sql', "(NEW.state = 'open' AND NEW.scan_id IS NOT NULL)", '(false)'),
  ),
  reports(
    'runs are handed to another feed without a new number',
    patch('src/storage/operator/forget-feed.ts', ', change_seq = ${tables.nextChange}', ''),
  ),
  reports(
    'stored rows of an erased run remain',
    patch('src/storage/runs/deleted-runs.ts', 'await deleteStoredRows({ db: tx, tables }, scanIds);', ''),
  ),
  reports(
    'a typed view shows stored rows of deleted runs',
    patch('src/storage/reporting/stored-rows.ts', "\\n  AND ${unchanged('deleted_runs')}", ''),
  ),
  reports(
    'what is read of a document fails a report',
    patch(
      'migrations/0002_reporting.sql',
      "RETURN CASE WHEN jsonb_typeof(value) = 'number' THEN value::numeric END;",
      'RETURN value::numeric;',
    ),
  ),
  reports(
    'a partner in test mode is productive',
    patch(
      'migrations/0002_reporting.sql',
      "run.environment = 'prod' AND NOT run.partner_test_mode AND run.status",
      "run.environment = 'prod' AND run.status",
    ),
  ),
];
