import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import { environmentWith, isSet } from '../../settings/settings.js';
import {
  QueryRefused,
  type Receive,
  type ResultColumn,
  type ResultRow,
  runReadOnly,
} from '../../storage/reporting/read-only-query.js';
import { isNumber, valueAsJson } from '../../storage/reporting/value-as-json.js';
import { quoted } from '../../storage/tables/schema.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { readSchemaSettings } from '../context/feed-settings.js';
import { withDatabase } from '../context/with-feed.js';
import { counted, printable, wrapIndented } from '../terminal/format.js';
import { table } from '../terminal/table.js';

interface Given extends CommonOptions {
  readonly csv?: true;
  readonly file?: string;
}

/** Maximum number of rows in a table, whose column widths depend on all of them, and of characters in a cell. */
const TABLE = { rows: 1_000, characters: 1_000 };
/** SQLSTATE of SET ROLE to a role of which the login is not a member. */
const NOT_A_MEMBER = '42501';
/** Remedies by SQLSTATE: for a missing table or column, and for a statement that is not a query. */
const REMEDIES: Readonly<Record<string, string>> = {
  '42P01': '; the view columns lists every view_name and column_name',
  '42703': '; the view columns lists every view_name and column_name',
  '42601': '; it must be one SELECT, VALUES, WITH or EXPLAIN',
};

const examples = `
The query reads the views for reports in a read-only transaction, with the
privileges of SCANFEED_READER_ROLE if it is set. Names need no schema. In the
folder of the demo, the query reads the demo's database unless another one is
configured. Rows wider than the terminal are shown as records.

Examples:
  $ scanfeed sql "SELECT * FROM sync_status"
  All views and their columns:
    $ scanfeed sql "SELECT view_name, column_name, data_type FROM columns"
  $ scanfeed sql --csv "SELECT * FROM failed_runs" > failed.csv
  $ scanfeed sql --file report.sql
  $ scanfeed sql "EXPLAIN ANALYZE SELECT count(*) FROM runs"`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('sql')
    .description('Run a query on the views for reports.')
    .argument('[query]', 'one SELECT, VALUES, WITH or EXPLAIN (default: standard input)')
    .option('-f, --file <path>', 'read the query from a file')
    .addOption(new Option('--json', 'print an array of objects, every digit as stored').conflicts('csv'))
    .option('--csv', 'print comma-separated values with a header; NULL is empty, an empty text is ""');
  withOptions(command, 'settings')
    .addHelpText('after', examples)
    .allowUnknownOption() // a query may begin with a comment
    .action((query: string | undefined, options: Given) => runQuery(query, options, io));
}

/** Where the demo stores the URL of its database, below the current folder. */
const DEMO_URL_FILE = '.scanfeed/database-url';
const OTHERS = ['DATABASE_URL', 'PGHOST', 'SCANFEED_FEEDS_FILE'];

async function runQuery(given: string | undefined, options: Given, terminal: CommandProcess): Promise<void> {
  const query = await readQuery(given, options.file);
  const isDemo = !isSet(OTHERS, terminal.env) && existsSync(DEMO_URL_FILE);
  const env = isDemo ? environmentWith({ DATABASE_URL_FILE: DEMO_URL_FILE }, terminal.env) : terminal.env;
  const io = { ...terminal, env };
  const settings = await readSchemaSettings(io, options.feed);
  const printer = options.json ? printJson(io) : options.csv ? printCsv(io) : printTable(io);
  await withDatabase(settings, async ({ connection }) => {
    const { readerRole: role, connection: login } = settings;
    try {
      await runReadOnly(login, { text: query, role, schema: connection.tables.reportingSchema }, printer.rows);
    } catch (error) {
      if (!(error instanceof QueryRefused)) throw error;
      throw new CommandFailure(describe(error, settings.readerRole, settings.connection.user));
    }
  });
  printer.end();
}

/** @throws CommandFailure if there is none, or it is a misspelt option */
async function readQuery(query: string | undefined, path: string | undefined): Promise<string> {
  if (query !== undefined && path !== undefined) throw new CommandFailure('give a query or --file', EXIT.usage);
  if (query !== undefined && /^-\S*$/.test(query)) throw new CommandFailure(`unknown option '${query}'`, EXIT.usage);
  if (query !== undefined) return query;
  if (path === undefined && process.stdin.isTTY) throw new CommandFailure('give a query or --file', EXIT.usage);
  return (path === undefined ? text(process.stdin) : readFile(path, 'utf8')).catch(({ code, message }) => {
    throw new CommandFailure(`the query cannot be read from ${path ?? 'standard input'} (${code ?? message})`);
  });
}

function describe({ message, sqlstate, ofRole }: QueryRefused, role: string | null, login: string): string {
  if (!ofRole || role === null) {
    return `PostgreSQL refused the query: ${printable(message)} (SQLSTATE ${sqlstate})${REMEDIES[sqlstate] ?? ''}`;
  }
  const remedy =
    sqlstate === NOT_A_MEMBER
      ? `let an administrator run: GRANT ${quoted(role)} TO ${quoted(login)}`
      : 'see the check "reader role" of `scanfeed doctor`';
  return `the role ${role} cannot be used: ${message}; ${remedy}`;
}

interface Printer {
  readonly rows: Receive;
  readonly end: () => void;
}

function printTable(io: CommandProcess): Printer {
  let columns: readonly ResultColumn[] = [];
  const shown: (readonly string[])[] = [];
  let isCut = false;
  return {
    rows: async (given, rows) => {
      columns = given;
      shown.push(...rows.map((row) => row.map((value) => shortened(value ?? '', TABLE.characters))));
      isCut = shown.length > TABLE.rows;
      return !isCut;
    },
    end: () => {
      const layout = columns.map(({ name, type }, index) => ({
        head: printable(name),
        cell: (row: readonly string[]) => row[index] ?? '',
        right: isNumber(type),
      }));
      const rows = shown.slice(0, TABLE.rows);
      // A column alone, such as a plan, is not cut; wide rows are shown like those of psql with \x auto.
      const lines = table(rows, layout);
      const isWide = io.columns !== null && lines.split('\n').some((line) => [...line].length > (io.columns ?? 0));
      const heads = layout.map(({ head }) => head);
      io.write(isWide && heads.length > 1 ? expanded(rows, heads, io.columns) : lines);
      io.note(
        isCut
          ? `the first ${rows.length} rows; --csv and --json print all\n`
          : `${counted(rows.length, 'row', 'rows')}\n`,
      );
    },
  };
}

/** Formats each row as a record with a line for each column. */
function expanded(rows: readonly (readonly string[])[], heads: readonly string[], columns: number | null): string {
  const width = Math.max(...heads.map(({ length }) => length));
  const lineOf = (value: string, index: number) =>
    `${(heads[index] ?? '').padEnd(width)} | ${wrapIndented(printable(value), width + 3, columns)}\n`;
  return rows.map((row, index) => `-[ RECORD ${index + 1} ]-\n${row.map(lineOf).join('')}`).join('');
}

function shortened(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`;
}

function printJson(io: CommandProcess): Printer {
  let separator = '[';
  return {
    rows: async (columns, rows) => {
      requireDistinctNames(columns);
      for (const row of rows) {
        const members = columns.map(
          ({ name, type }, index) => `${JSON.stringify(name)}:${valueAsJson(row[index] ?? null, type)}`,
        );
        io.write(`${separator}{${members.join(',')}}`);
        separator = ',\n';
      }
      return io.written();
    },
    end: () => io.write(separator === '[' ? '[]\n' : ']\n'),
  };
}

/** An object in JSON cannot have two members of one name. */
function requireDistinctNames(columns: readonly ResultColumn[]): void {
  const names = columns.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined)
    throw new CommandFailure(`two columns are named ${JSON.stringify(twice)}; rename one with AS for --json`);
}

function printCsv(io: CommandProcess): Printer {
  let hasHeader = false;
  const line = (values: ResultRow) => `${values.map(csvValue).join(',')}\r\n`;
  return {
    rows: async (columns, rows) => {
      if (!hasHeader) io.write(line(columns.map(({ name }) => name)));
      hasHeader = true;
      io.write(rows.map(line).join(''));
      return io.written();
    },
    end: () => {},
  };
}

/** As in RFC 4180. */
function csvValue(value: string | null): string {
  if (value === null) return '';
  return value === '' || /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}
