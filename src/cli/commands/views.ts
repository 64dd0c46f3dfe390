import type { Command } from 'commander';
import { describeError } from '../../observability/log/describe-error.js';
import { readDescribedViews } from '../../storage/reporting/described-views.js';
import { forgetProgress } from '../../storage/reporting/new-documents.js';
import type { Refreshed } from '../../storage/reporting/refresh-reports.js';
import type { ReportColumn, StoredView } from '../../storage/reporting/report-view.js';
import { readReportViews } from '../../storage/reporting/stored-views.js';
import { sqlTypeOf } from '../../storage/reporting/view-definition.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure, EXIT, explain, worstOf } from '../context/exit.js';
import { readSchemaSettings } from '../context/feed-settings.js';
import { withDatabase } from '../context/with-feed.js';
import { counted } from '../terminal/format.js';
import { type Column, table } from '../terminal/table.js';
import { dbtSources } from '../views/dbt-sources.js';
import {
  changeIndex,
  findView,
  listIndexes,
  type ReportsWork,
  refreshWithProgress,
  storeRows,
} from '../views/store-rows.js';

interface ShowOptions extends CommonOptions {
  readonly dbt?: true;
}

interface StoreOptions extends CommonOptions {
  readonly drop?: true;
}

interface IndexOptions extends StoreOptions {
  readonly list?: true;
}

/** Deadline of a statement, milliseconds. An index of many rows takes long, and waits for the reports that began before. */
const DEADLINE_MS = 24 * 3_600_000;

const examples = `
Each document type has a view document_<slug> with a column for each field, a
view of its superseded revisions, and a view for each array of objects. Columns
are added but never removed.

Examples:
  $ scanfeed views list
  $ scanfeed views show document_rechnung
  Keep the rows of a view in a table, which makes sums several times faster:
    $ scanfeed views store document_rechnung
  Find documents by a column in milliseconds:
    $ scanfeed views index document_rechnung rechnungsnummer
  Describe all typed views to dbt:
    $ scanfeed views show --dbt > models/documents.yml
  Scan the documents stored since the last refresh:
    $ scanfeed views refresh
  Scan all documents again:
    $ scanfeed views refresh --all`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('views')
    .description('List, show or refresh the typed views of documents for reports.')
    .addHelpText('afterAll', examples);
  const refreshing = command
    .command('refresh')
    .description('Create views for new document types and columns for new fields.')
    .option('--all', 'scan all documents, not only those stored since the last refresh');
  withOptions(refreshing, 'quiet', 'json', 'settings').action((options: CommonOptions) => refresh(options, io));
  const listing = command.command('list').description('List the views with their document types.');
  withOptions(listing, 'json', 'settings').action((options: CommonOptions) => list(options, io));
  const showing = command
    .command('show')
    .description('Show the columns of a view with the fields that they contain.')
    .argument('[name]', 'name of the view, as listed')
    .option('--dbt', 'print it as a source of a dbt project; without a name, all typed views');
  withOptions(showing, 'json', 'settings').action((name: string | undefined, { dbt, ...given }: ShowOptions) => {
    if (dbt) return showSources(name, given, io);
    if (name === undefined) throw new CommandFailure('name a view, or print all with --dbt', EXIT.usage);
    return show(name, given, io);
  });
  const storing = command
    .command('store')
    .description('Keep the rows of a view in a table. The daemon keeps it up to date.')
    .argument('<name>', 'name of the view, as listed')
    .option('--drop', 'drop the table and its indexes; the view then reads the documents');
  withOptions(storing, 'quiet', 'json', 'settings').action((name: string, { feed, ...options }: StoreOptions) =>
    withReports(io, feed, (reports) => storeRows(name, options, reports, io)),
  );
  const indexing = command
    .command('index')
    .description('Create an index on a view and keep its rows in a table, or list the indexes.')
    .argument('[name]', 'name of the view, as listed')
    .argument('[columns...]', 'columns of the index, in order')
    .option('--drop', 'drop the index on these columns')
    .option('--list', 'list the indexes of all views');
  withOptions(indexing, 'quiet', 'json', 'settings').action(
    (name: string | undefined, columns: readonly string[], { list, feed, ...options }: IndexOptions) =>
      withReports(io, feed, async (reports) => {
        if (list) return listIndexes(options.json ?? false, reports.connection, io);
        if (name === undefined || columns.length === 0)
          throw new CommandFailure('name a view and the columns of the index, or --list', EXIT.usage);
        return changeIndex(name, columns, options, reports, io);
      }),
  );
}

async function withReports(
  io: CommandProcess,
  feed: string | undefined,
  work: (reports: ReportsWork) => Promise<void>,
): Promise<void> {
  const settings = await readSchemaSettings(io, feed);
  const { readerRole } = settings;
  return withDatabase(settings, ({ connection }) => work({ connection, readerRole }), DEADLINE_MS);
}

function refresh(options: CommonOptions, io: CommandProcess): Promise<void> {
  const { all, feed, json } = options;
  return withReports(io, feed, async (reports) => {
    if (all) await forgetProgress(reports.connection);
    const done = await refreshWithProgress(reports, options, io);
    const { views, columns, built, busy } = done;
    const failed = done.failed.map(({ view, error }) => ({ view, why: describeError(error).message }));
    io.write(json ? `${JSON.stringify({ views, columns, built, failed, busy })}\n` : describe(done));
    if (busy) {
      throw new CommandFailure('a daemon is already scanning new documents and building their views', EXIT.tryAgain);
    }
    const [first] = failed;
    if (first !== undefined) {
      const code = worstOf(done.failed.map(({ error }) => explain(error).exitCode));
      throw new CommandFailure(`not built: ${failed.map(({ view }) => view).join(', ')}; ${first.why}`, code);
    }
  });
}

function describe({ views, columns, built, failed, busy }: Refreshed): string {
  if (built.length === 0) return failed.length > 0 || busy ? '' : 'All views are up to date.\n';
  const added = `New: ${counted(views, 'view', 'views')}, ${counted(columns, 'column', 'columns')}.`;
  return `${added} Built:\n${built.map((name) => `  ${name}\n`).join('')}`;
}

function list({ feed, json }: CommonOptions, io: CommandProcess): Promise<void> {
  return withReports(io, feed, async ({ connection }) => {
    const views = (await readReportViews(connection)).toSorted(byType);
    if (json) io.write(`${JSON.stringify(views.map(listed))}\n`);
    else if (views.length === 0) io.write('No documents have been scanned yet: run `scanfeed views refresh`.\n');
    else io.write(table(views, LIST));
  });
}

/** Orders views by document type, outer ones first. */
function byType(a: StoredView, b: StoredView): number {
  if (a.slug !== b.slug) return a.slug < b.slug ? -1 : 1;
  return a.arrays.length - b.arrays.length;
}

function listed({ name, slug, arrays, history, builtAt, storesRows, columns }: StoredView) {
  return { name, slug, arrays, history, builtAt, storesRows, fields: columns.length };
}

const LIST: readonly Column<StoredView>[] = [
  { head: 'VIEW', cell: ({ name }) => name },
  { head: 'DOCUMENT TYPE', cell: ({ slug }) => slug },
  { head: 'ROWS ARE', cell: rowsOf },
  { head: 'FIELDS', cell: ({ columns }) => String(columns.length), right: true },
  { head: 'IN A TABLE', cell: ({ storesRows }) => (storesRows ? 'yes' : 'no') },
];

function rowsOf({ arrays, history }: StoredView): string {
  if (history) return 'superseded revisions';
  return arrays.length === 0 ? 'documents' : `elements of ${arrays.map((path) => path.join('.')).join('[].')}`;
}

function show(name: string, { feed, json }: CommonOptions, io: CommandProcess): Promise<void> {
  return withReports(io, feed, async ({ connection }) => {
    const view = await findView(name, connection);
    const { slug: documentType, arrays, history } = view;
    if (json) {
      const columns = view.columns.map((column) => ({ ...column, type: sqlTypeOf(column.type) }));
      return io.write(`${JSON.stringify({ name, documentType, arrays, history, columns })}\n`);
    }
    io.write(
      `${connection.tables.reportingSchema}.${name}: ${rowsOf(view)} of the document type ${JSON.stringify(documentType)}\n\n`,
    );
    io.write(table(view.columns, COLUMNS));
  });
}

function showSources(name: string | undefined, { feed }: CommonOptions, io: CommandProcess): Promise<void> {
  return withReports(io, feed, async ({ connection }) => {
    const known = name === undefined ? await readReportViews(connection) : [await findView(name, connection)];
    const typed = new Map(known.map((view) => [view.name, view]));
    const views = (await readDescribedViews(connection)).filter((view) => typed.has(view.name));
    if (views.length === 0) throw new CommandFailure('there are no typed views yet: run `scanfeed views refresh`');
    const perRun = (view: string) => typed.get(view)?.history === false && typed.get(view)?.arrays.length === 0;
    const tests = (view: string) => ({ tests: { scan_id: perRun(view) ? ['unique', 'not_null'] : ['not_null'] } });
    io.write(dbtSources(connection.tables.reportingSchema, views, tests));
  });
}

const COLUMNS: readonly Column<ReportColumn>[] = [
  { head: 'COLUMN', cell: ({ name }) => name },
  { head: 'TYPE', cell: ({ type }) => sqlTypeOf(type) },
  { head: 'FIELD', cell: ({ path }) => path.join('.') },
];
