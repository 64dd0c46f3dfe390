import { describeError } from '../../observability/log/describe-error.js';
import type { StoreConnection } from '../../storage/connection/store-connection.js';
import { countNewChanges, type SkippedDocument } from '../../storage/reporting/new-documents.js';
import { type Refreshed, refreshReports } from '../../storage/reporting/refresh-reports.js';
import type { CommandProcess } from '../context/command-process.js';
import { type ProgressOptions, withProgress } from '../terminal/progress.js';

export interface ReportsWork {
  readonly connection: StoreConnection;
  readonly readerRole: string | null;
}

/** Brings the typed views and their tables up to date, and shows the progress. */
export async function refreshWithProgress(
  { connection, readerRole }: ReportsWork,
  options: ProgressOptions,
  io: CommandProcess,
): Promise<Refreshed> {
  const total = await countNewChanges(connection);
  const figures = (done: number) => ({ done, total, what: 'changes scanned' });
  return withProgress(io, options, figures(0), (progress) => {
    const between = (changes: number) => {
      progress.show(figures(changes));
      return true;
    };
    const onSkipped = ({ scanId, error }: SkippedDocument) =>
      progress.say(`scanfeed: the document of ${scanId} was skipped: ${describeError(error).message}`);
    return refreshReports(connection, readerRole, { between, onSkipped });
  });
}
