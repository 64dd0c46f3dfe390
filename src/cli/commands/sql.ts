import { type Command, Option } from 'commander';
import { readSettings } from '../../settings/settings.js';
import {
  isNumber,
  QueryRefused,
  type ResultColumn,
  type ResultRow,
  runReadOnly,
  valueAsJson,
} from '../../storage/reporting/read-only-query.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { CommandFailure } from '../context/exit.js';
import { withDatabase } from '../context/with-feed.js';
import { counted } from '../terminal/format.js';
import { table } from '../terminal/table.js';

interface Given {
  readonly json?: true;
  readonly csv?: true;
}

/** Maximum number of rows in a table, which needs all of them for its widths. */
const MAX_TABLE_ROWS = 1_000;

const examples = `
The query reads the views for reports with the rights of SCANFEED_READER_ROLE,
in a read-only transaction. Names need no schema.

Examples:
  $ scanfeed sql "SELECT * FROM sync_status"
  $ scanfeed sql --csv "SELECT * FROM failed_runs" > failed.csv`;

/** `scanfeed sql`: runs a query on the views for reports. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('sql')
    .description('Run a query on the views for reports.')
    .argument('<query>', 'one SELECT, VALUES or WITH')
    .addOption(new Option('--json', 'print an array of objects, every digit as stored').conflicts('csv'))
    .option('--csv', 'print comma-separated values with a header; NULL is empty, an empty text is ""')
    .addHelpText('after', examples)
    .action((query: string, options: Given) => runQuery(query, options, io));
}

async function runQuery(text: string, options: Given, io: CommandProcess): Promise<void> {
  const { database: settings } = readSettings(io.env, { need: ['database'] });
  const printer = options.json ? printJson(io) : options.csv ? printCsv(io) : printTable(io);
  await withDatabase(settings, async ({ connection }) => {
    const query = { text, role: settings.readerRole, schema: connection.tables.reportingSchema };
    try {
      await runReadOnly(settings.connection, query, printer.rows);
    } catch (error) {
      if (!(error instanceof QueryRefused)) throw error;
      throw new CommandFailure(describe(error, settings.readerRole));
    }
  });
  printer.end();
}

function describe({ message, sqlstate, ofRole }: QueryRefused, role: string): string {
  return ofRole
    ? `the role ${role} cannot be used: ${message}; see the check "reader role" of \`scanfeed doctor\``
    : `PostgreSQL refused the query: ${message} (SQLSTATE ${sqlstate})`;
}

/** Prints a result. */
interface Printer {
  /** Takes the next rows. Returns false if it needs no more. */
  readonly rows: (columns: readonly ResultColumn[], rows: readonly ResultRow[]) => boolean;
  readonly end: () => void;
}

function printTable(io: CommandProcess): Printer {
  let columns: readonly ResultColumn[] = [];
  const shown: ResultRow[] = [];
  let isCut = false;
  return {
    rows: (given, rows) => {
      columns = given;
      shown.push(...rows);
      isCut = shown.length > MAX_TABLE_ROWS;
      return !isCut;
    },
    end: () => {
      const layout = columns.map(({ name, type }, index) => ({
        head: name,
        cell: (row: ResultRow) => row[index] ?? '',
        shrinks: true as const,
        ...(isNumber(type) && { right: true as const }),
      }));
      const rows = shown.slice(0, MAX_TABLE_ROWS);
      io.write(table(rows, layout, io.columns));
      io.note(
        isCut
          ? `the first ${rows.length} rows; --csv and --json print all\n`
          : `${counted(rows.length, 'row', 'rows')}\n`,
      );
    },
  };
}

function printJson(io: CommandProcess): Printer {
  let separator = '[';
  return {
    rows: (columns, rows) => {
      for (const row of rows) {
        const members = columns.map(
          ({ name, type }, index) => `${JSON.stringify(name)}:${valueAsJson(row[index] ?? null, type)}`,
        );
        io.write(`${separator}{${members.join(',')}}`);
        separator = ',\n';
      }
      return true;
    },
    end: () => io.write(separator === '[' ? '[]\n' : ']\n'),
  };
}

function printCsv(io: CommandProcess): Printer {
  let hasHeader = false;
  const line = (values: ResultRow) => `${values.map(csvValue).join(',')}\r\n`;
  return {
    rows: (columns, rows) => {
      if (!hasHeader) io.write(line(columns.map(({ name }) => name)));
      hasHeader = true;
      io.write(rows.map(line).join(''));
      return true;
    },
    end: () => {},
  };
}

/** As in RFC 4180. */
function csvValue(value: string | null): string {
  if (value === null) return '';
  return value === '' || /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}
