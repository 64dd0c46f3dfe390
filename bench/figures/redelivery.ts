import type { Contested } from '../contestants/contest.js';
import { runContest } from '../contestants/run-contest.js';
import { startService } from '../service/start.js';
import { atLeast, atMost, type Figure, whole } from '../support/figure.js';
import { type BenchDatabase, type BenchServer, startServer } from '../support/postgres.js';
import { migratedDatabase, syncToTheEnd } from '../support/scanfeed-sync.js';
import { median } from '../support/statistics.js';

/** A feed of another name has no cursor, and reads everything again into the same table. */
const AGAIN = { SCANFEED_FEED: 'again' };

interface Round extends Again {
  readonly cold: number;
  readonly expert: Again;
}

/** The second reading. */
interface Again {
  readonly again: number;
  /** Rows that are not as they were. */
  readonly touched: number;
  readonly walBytesPerRun: number;
}

export const redelivery: Figure = {
  name: 'redelivery',
  title: 'Redelivery of a whole history',
  method:
    'The history is read into an empty database, and then a second time by a feed without a cursor. Time runs from the start of each process. The expert’s script of the cold sync also reads it twice, into its own table. It is connected and ready when its time begins.',
  measure: async ({ scope, quick, note }) => {
    const service = await startService(scope, { history: quick ? 5_000 : 100_000 });
    const server = await startServer(scope);
    const migrated = await migratedDatabase(server);
    const rounds: Round[] = [];
    for (let round = 0; round < (quick ? 2 : 6); round++) {
      const database = await server.createDatabase();
      await server.checkpoint();
      const cold = rateOf(await syncToTheEnd(service, database));
      const again = await readAgain(server, database, 'scanfeed.runs', () => syncToTheEnd(service, database, AGAIN));
      await database.drop();
      const other = await migrated.clone();
      const script = () => runContest('experts-script', service, other);
      await script();
      const expert = await readAgain(server, other, 'expert', script);
      await other.drop();
      rounds.push({ cold, ...again, expert });
      note(`round ${round + 1}: ${whole(cold)}, again ${whole(again.again)}, expert ${whole(expert.again)} runs/s`);
    }
    // The first is the warm-up.
    const counted = rounds.slice(1);
    const rowOf = (name: string, readings: readonly Again[]) => [
      name,
      whole(median(readings.map(({ again }) => again))),
      whole(Math.max(...readings.map(({ touched }) => touched))),
      whole(median(readings.map(({ walBytesPerRun }) => walBytesPerRun))),
    ];
    return {
      postgresVersion: server.version,
      table: {
        head: ['', 'runs/s', 'rows written or locked', 'WAL bytes per run'],
        rows: [
          ['first reading', whole(median(counted.map(({ cold }) => cold))), '', ''],
          rowOf('second reading', counted),
          rowOf(
            'second reading by the expert’s script',
            counted.map(({ expert }) => expert),
          ),
        ],
      },
      wanted: [
        atLeast('rate relative to the first reading', median(counted.map(({ cold, again }) => again / cold)), 1.2),
        atLeast(
          'rate relative to the second reading by the script',
          median(counted.map(({ again, expert }) => again / expert.again)),
          1.2,
        ),
        atMost('rows written or locked', Math.max(...counted.map(({ touched }) => touched)), 0, 'rows'),
      ],
    };
  },
};

async function readAgain(
  server: BenchServer,
  database: BenchDatabase,
  table: string,
  read: () => Promise<Contested>,
): Promise<Again> {
  // What autovacuum would do in its own time, and write to the log.
  await database.query(`VACUUM ANALYZE ${table}`);
  // Where every row is, and which transactions wrote and locked it.
  const rows = `SELECT scan_id, ctid::text AS place, xmin::text AS written_by, xmax::text AS locked_by FROM ${table}`;
  await database.query(`CREATE TABLE remembered AS ${rows}`);
  await server.checkpoint();
  const walBefore = await walPosition(database);
  const again = await read();
  const wal = (await walPosition(database)) - walBefore;
  const [changed] = await database.query<{ rows: number }>(`
    SELECT count(*)::int AS rows FROM ((${rows}) EXCEPT TABLE remembered) AS changed`);
  return { again: rateOf(again), touched: changed?.rows ?? Number.NaN, walBytesPerRun: wal / again.runs };
}

function rateOf({ runs, seconds }: Contested): number {
  return runs / seconds;
}

/** Bytes of write-ahead log that the server has written so far. */
async function walPosition(database: BenchDatabase): Promise<number> {
  const [row] = await database.query<{ bytes: string }>("SELECT pg_current_wal_lsn() - '0/0' AS bytes");
  return Number(row?.bytes);
}
