import { describeError } from '../../observability/log/describe-error.js';
import type { StoreConnection } from '../../storage/connection/store-connection.js';
import { ownColumns } from '../../storage/reporting/fixed-columns.js';
import { countNewChanges, type SkippedDocument } from '../../storage/reporting/new-documents.js';
import { type Refreshed, refreshReports } from '../../storage/reporting/refresh-reports.js';
import type { StoredView } from '../../storage/reporting/report-view.js';
import {
  createStoredIndex,
  dropStoredIndex,
  findIndexesOn,
  listStoredIndexes,
  type StoredIndex,
} from '../../storage/reporting/stored-indexes.js';
import { readReportViews, setStoresRows } from '../../storage/reporting/stored-views.js';
import type { CommandProcess } from '../context/command-process.js';
import type { CommonOptions } from '../context/common-options.js';
import { CommandFailure, EXIT, explain } from '../context/exit.js';
import { withProgress } from '../terminal/progress.js';
import { type Column, table } from '../terminal/table.js';

export interface ReportsWork {
  readonly connection: StoreConnection;
  readonly readerRole: string | null;
}

/** Brings the typed views and their tables up to date, and shows the progress. */
export async function refreshWithProgress(
  { connection, readerRole }: ReportsWork,
  options: CommonOptions,
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

export async function findView(name: string, connection: StoreConnection): Promise<StoredView> {
  const view = (await readReportViews(connection)).find((each) => each.name === name);
  if (view !== undefined) return view;
  throw new CommandFailure(`there is no view ${JSON.stringify(name)}; see \`scanfeed views list\``);
}

export async function storeRows(
  name: string,
  { drop, ...options }: CommonOptions & { readonly drop?: true },
  work: ReportsWork,
  io: CommandProcess,
): Promise<void> {
  const view = await findView(name, work.connection);
  await changeStorage(view, drop !== true, options, work, io);
  if (options.json) return io.write(`${JSON.stringify({ view: name, storesRows: drop !== true })}\n`);
  const now = drop ? 'now reads the documents directly; its table was dropped' : 'keeps its rows in a table now';
  io.write(`${name} ${now}.\n`);
}

export async function changeIndex(
  name: string,
  columns: readonly string[],
  { drop, ...options }: CommonOptions & { readonly drop?: true },
  work: ReportsWork,
  io: CommandProcess,
): Promise<void> {
  const { connection } = work;
  const view = await findView(name, connection);
  requireColumns(view, columns);
  const same = await findIndexesOn(name, columns, connection);
  const report = (index: 'created' | 'dropped' | 'unchanged', said: string) =>
    io.write(options.json ? `${JSON.stringify({ view: name, columns, index })}\n` : said);
  if (drop) {
    if (same.length === 0) throw new CommandFailure(`${name} has no index on ${columns.join(', ')}`);
    for (const index of same) await dropStoredIndex(connection, index.name);
    return report('dropped', `Dropped the index of ${name} on ${columns.join(', ')}.\n`);
  }
  if (same.some(({ valid }) => valid)) return report('unchanged', `${name} already has this index.\n`);
  if (!view.hasTable) await changeStorage(view, true, options, work, io);
  if (!(await findView(name, connection)).hasTable)
    throw new CommandFailure(`another process is building ${name}; try again`, EXIT.tryAgain);
  for (const index of same) await dropStoredIndex(connection, index.name);
  await withProgress(io, options, 'creating the index', () => createStoredIndex(connection, view, columns));
  report('created', `Created an index of ${name} on ${columns.join(', ')}.\n`);
}

export async function listIndexes(json: boolean, connection: StoreConnection, io: CommandProcess): Promise<void> {
  const indexes = await listStoredIndexes(connection);
  if (json) io.write(`${JSON.stringify(indexes)}\n`);
  else if (indexes.length === 0) io.write('There are no indexes.\n');
  else io.write(table(indexes, INDEXES));
}

const INDEXES: readonly Column<StoredIndex>[] = [
  { head: 'VIEW', cell: ({ view }) => view },
  { head: 'COLUMNS', cell: ({ columns }) => columns.join(', ') },
  { head: 'SIZE', cell: ({ bytes }) => `${(bytes / 2 ** 20).toFixed(1)} MiB`, right: true },
  { head: 'STATE', cell: ({ valid }) => (valid ? 'valid' : 'invalid: create it again') },
];

async function changeStorage(
  view: StoredView,
  wanted: boolean,
  options: CommonOptions,
  work: ReportsWork,
  io: CommandProcess,
): Promise<void> {
  if (view.history) throw new CommandFailure('views of superseded revisions cannot keep their rows in a table');
  await setStoresRows(work.connection, view.id, wanted);
  const { busy, failed } = await refreshWithProgress(work, options, io);
  const problem = failed.find((failure) => failure.view === view.name);
  if (problem !== undefined)
    throw new CommandFailure(
      `${view.name} was not brought up to date: ${describeError(problem.error).message}`,
      explain(problem.error).exitCode,
    );
  if (busy)
    throw new CommandFailure('a daemon is scanning new documents and will store the remaining rows', EXIT.tryAgain);
}

function requireColumns(view: StoredView, columns: readonly string[]): void {
  const known = [...ownColumns(view), ...view.columns].map((column) => column.name);
  const unknown = columns.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new CommandFailure(
    `${view.name} has no column ${JSON.stringify(unknown)} that can be indexed; see \`scanfeed views show ${view.name}\``,
  );
}
