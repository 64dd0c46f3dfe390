import { startService } from '../service/start.js';
import { atLeast, atMost, type Figure, whole } from '../support/figure.js';
import { type BenchDatabase, startServer } from '../support/postgres.js';
import { syncToTheEnd } from '../support/scanfeed-sync.js';
import { median } from '../support/statistics.js';

/** A feed of another name has no cursor, and reads everything again into the same table. */
const AGAIN = { SCANFEED_FEED: 'again' };

interface Round {
  readonly cold: number;
  readonly again: number;
  /** Rows that are not as they were. */
  readonly touched: number;
  readonly walBytesPerRun: number;
}

export const redelivery: Figure = {
  name: 'redelivery',
  title: 'Redelivery of a whole history',
  method:
    'The history is read into an empty database, and then once more by a feed without a cursor. Time runs from the start of each process.',
  measure: async ({ scope, quick, note }) => {
    const service = await startService(scope, { history: quick ? 5_000 : 100_000 });
    const server = await startServer(scope);
    const rounds: Round[] = [];
    for (let round = 0; round < (quick ? 2 : 4); round++) {
      const database = await server.createDatabase();
      await server.checkpoint();
      const cold = await syncToTheEnd(service, database);
      // What autovacuum would do in its own time, and write to the log.
      await database.query('VACUUM ANALYZE scanfeed.runs');
      await rememberRows(database);
      await server.checkpoint();
      const walBefore = await walPosition(database);
      const again = await syncToTheEnd(service, database, AGAIN);
      const wal = (await walPosition(database)) - walBefore;
      rounds.push({
        cold: cold.runs / cold.seconds,
        again: again.runs / again.seconds,
        touched: await countTouched(database),
        walBytesPerRun: wal / again.runs,
      });
      await database.drop();
      note(`round ${round + 1}: ${whole(cold.runs / cold.seconds)}, again ${whole(again.runs / again.seconds)} runs/s`);
    }
    // The first is the warm-up.
    const counted = rounds.slice(1);
    return {
      postgresVersion: server.version,
      table: {
        head: ['', 'runs/s', 'rows touched', 'WAL bytes a run'],
        rows: [
          ['cold', whole(median(counted.map(({ cold }) => cold))), '', ''],
          [
            'again',
            whole(median(counted.map(({ again }) => again))),
            whole(Math.max(...counted.map(({ touched }) => touched))),
            whole(median(counted.map(({ walBytesPerRun }) => walBytesPerRun))),
          ],
        ],
      },
      wanted: [
        atLeast('times the cold rate', median(counted.map(({ cold, again }) => again / cold)), 1.2),
        atMost('rows written or locked', Math.max(...counted.map(({ touched }) => touched)), 0, 'rows'),
      ],
    };
  },
};

/** Notes where every row is and which transactions wrote and locked it. */
async function rememberRows(database: BenchDatabase): Promise<void> {
  await database.query(`CREATE TABLE remembered AS ${ROWS}`);
}

async function countTouched(database: BenchDatabase): Promise<number> {
  const [row] = await database.query<{ touched: number }>(`
    SELECT count(*)::int AS touched FROM ((${ROWS}) EXCEPT TABLE remembered) AS changed`);
  return row?.touched ?? Number.NaN;
}

const ROWS =
  'SELECT scan_id, ctid::text AS place, xmin::text AS written_by, xmax::text AS locked_by FROM scanfeed.runs';

/** Bytes of write-ahead log that the server has written so far. */
async function walPosition(database: BenchDatabase): Promise<number> {
  const [row] = await database.query<{ bytes: string }>("SELECT pg_current_wal_lsn() - '0/0' AS bytes");
  return Number(row?.bytes);
}
