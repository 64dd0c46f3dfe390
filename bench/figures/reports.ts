import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type pg from 'pg';
import { startService } from '../service/start.js';
import { PROGRAM } from '../support/daemon.js';
import { atLeast, atMost, type Figure, whole } from '../support/figure.js';
import { multiplyRuns } from '../support/multiply-runs.js';
import { type BenchDatabase, startServer } from '../support/postgres.js';
import { migratedDatabase, syncToTheEnd } from '../support/scanfeed-sync.js';
import { inScope } from '../support/scope.js';
import { median } from '../support/statistics.js';

const SAMPLE = 50_000;
const VIEW = 'scanfeed_reporting.document_rechnung';
const SUMS = `SELECT partner_name, date_trunc('month', rechnungsdatum), sum(bruttobetrag), count(*)
  FROM ${VIEW} WHERE productive GROUP BY 1, 2`;
const TURNS = 5;

/** Milliseconds of a query on a view that reads documents, and on one that keeps its rows in a table. */
interface Times {
  readonly documents: number;
  readonly table: number;
}

export const reports: Figure = {
  name: 'reports',
  title: 'Rows of typed views in tables',
  method:
    'Two copies of a database are compared, with 150,000 and with a million runs. In one copy the view document_rechnung reads the documents; in the other copy it keeps its rows in a table, with an index on rechnungsnummer (`scanfeed views index`). One query looks up the documents with one invoice number, another one sums gross amounts by partner and month. They run alternately on both copies, without parallel plans. Times are medians of five turns after a warm-up.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const server = await startServer(scope);
    const sizes = quick ? [5_000, 10_000] : [150_000, 1_000_000];
    const measured: { runs: number; lookup: Times; sums: Times; share: number }[] = [];
    for (const runs of sizes) {
      const documents = await migratedDatabase(server);
      await inScope(async (inner) => {
        await syncToTheEnd(await startService(inner, { history: quick ? 1_000 : SAMPLE, seed: 1_000 }), documents);
      });
      await scanfeed(documents, 'views', 'refresh');
      await multiplyRuns(documents, runs, note);
      const table = await documents.clone();
      await scanfeed(table, 'views', 'index', 'document_rechnung', 'rechnungsnummer');
      await table.query('VACUUM ANALYZE');
      const [row] = await documents.query<{ number: string }>(`SELECT rechnungsnummer AS number FROM ${VIEW} LIMIT 1`);
      const lookup = await byTurns(documents, table, `SELECT * FROM ${VIEW} WHERE rechnungsnummer = '${row?.number}'`);
      const sums = await byTurns(documents, table, SUMS);
      measured.push({ runs, lookup, sums, share: await shareOfTable(table) });
      for (const database of [documents, table]) await database.drop();
    }
    const [small = measured[0], large = measured.at(-1)] = measured;
    return {
      postgresVersion: server.version,
      table: {
        head: ['', 'from documents', 'from the table', 'times faster'],
        rows: measured.flatMap(({ runs, lookup, sums }) => [
          line(`lookup in ${whole(runs)} runs`, lookup),
          line(`sums of ${whole(runs)} runs`, sums),
        ]),
      },
      notes: [
        `The table and its indexes take ${Math.round(100 * (large?.share ?? 0))} % of the space that \`runs\` and its indexes take.`,
      ],
      wanted: [
        atLeast('times faster for a lookup', faster(small?.lookup), 100),
        atMost('duration of a lookup', small?.lookup.table ?? Number.NaN, 5, 'ms', 1),
        atLeast('times faster for sums', faster(large?.sums), 5),
      ],
    };
  },
};

function line(name: string, times: Times): string[] {
  const shown = (ms: number) => `${ms.toFixed(ms < 10 ? 2 : 0)} ms`;
  return [name, shown(times.documents), shown(times.table), faster(times).toFixed(1)];
}

function faster(times: Times | undefined): number {
  return times === undefined ? Number.NaN : times.documents / times.table;
}

function byTurns(documents: BenchDatabase, table: BenchDatabase, query: string): Promise<Times> {
  return documents.withClient((first) =>
    table.withClient(async (second) => {
      const times: { documents: number[]; table: number[] } = { documents: [], table: [] };
      for (let turn = 0; turn <= TURNS; turn++) {
        const turns = { documents: await duration(first, query), table: await duration(second, query) };
        if (turn === 0) continue; // the warm-up
        times.documents.push(turns.documents);
        times.table.push(turns.table);
      }
      return { documents: median(times.documents), table: median(times.table) };
    }),
  );
}

async function duration(client: pg.Client, query: string): Promise<number> {
  await client.query('SET max_parallel_workers_per_gather = 0');
  const startedAt = performance.now();
  await client.query(query);
  return performance.now() - startedAt;
}

/** Returns the size of the table of rows, relative to `runs`, both with their indexes. */
async function shareOfTable(database: BenchDatabase): Promise<number> {
  const [row] = await database.query<{ share: number }>(`
    SELECT (SELECT pg_total_relation_size(oid) FROM pg_class WHERE relname ~ '^stored_\\d+$' AND relkind = 'r')::float8
      / pg_total_relation_size('scanfeed.runs') AS share`);
  return row?.share ?? Number.NaN;
}

async function scanfeed(database: BenchDatabase, ...args: readonly string[]): Promise<void> {
  const { PATH = '', HOME = '' } = process.env;
  await promisify(execFile)(process.execPath, [PROGRAM, ...args], { env: { PATH, HOME, DATABASE_URL: database.url } });
}
