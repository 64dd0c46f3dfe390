import { startService } from '../service/start.js';
import { atLeast, type Figure, whole } from '../support/figure.js';
import { type BenchDatabase, startServer } from '../support/postgres.js';
import { mediansByPart, ratesByPart } from '../support/rates-by-part.js';
import { migratedDatabase, syncToTheEnd } from '../support/scanfeed-sync.js';
import { inScope } from '../support/scope.js';
import { median } from '../support/statistics.js';

const SAMPLE = 2_000;
const AT_ONCE = 250_000;
const PARTS = 3;

interface Rates {
  readonly whole: number;
  readonly parts: readonly number[];
}

export const largeTable: Figure = {
  name: 'large-table',
  title: 'Five million rows in the table',
  method:
    'A history of the last thirty days is read into an empty table, and one of other runs into a table that holds five million of the year up to yesterday already, by turns. Time runs from the start of each process. Before each the table is vacuumed, so that what the round before left behind is not part of it. A checkpoint is made, too: whatever page of the index is touched for the first time after one goes to the log as a whole, which is most of them in the first third. The history is long enough to see the rest.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const rows = quick ? 50_000 : 5_000_000;
    const history = quick ? 20_000 : 300_000;
    const server = await startServer(scope);
    const empty = await migratedDatabase(server);
    const full = await empty.clone();
    await inScope(async (inner) => {
      await syncToTheEnd(await startService(inner, { history: SAMPLE, seed: 1_000 }), full);
    });
    await fill(full, rows, note);
    await server.checkpoint();
    const rounds: { empty: Rates; full: Rates }[] = [];
    for (let round = 0; round < (quick ? 2 : 7); round++) {
      rounds.push(
        await inScope(async (inner) => {
          // Others than before, and a feed that has not read them.
          const service = await startService(inner, { history, seed: round + 1 });
          const ratesInto = async (database: BenchDatabase): Promise<Rates> => {
            await database.query('VACUUM ANALYZE scanfeed.runs');
            await server.checkpoint();
            const before = await stateOf(database);
            const synced = await syncToTheEnd(service, database, { SCANFEED_FEED: `round-${round}` });
            return {
              whole: (synced.runs - before.rows) / synced.seconds,
              parts: await ratesByPart(database, PARTS, before.changeSeq),
            };
          };
          const fresh = await empty.clone();
          const rates = { empty: await ratesInto(fresh), full: await ratesInto(full) };
          await fresh.drop();
          note(`round ${round + 1}: empty ${shown(rates.empty)}, full ${shown(rates.full)} runs/s`);
          return rates;
        }),
      );
    }
    const counted = rounds.slice(1); // the first is the warm-up
    return {
      postgresVersion: server.version,
      table: {
        head: ['', 'runs/s', 'first third', 'second', 'last'],
        rows: [
          ['into an empty table', ...medians(counted.map((round) => round.empty)).map(whole)],
          [`into one of ${whole(rows)} rows`, ...medians(counted.map((round) => round.full)).map(whole)],
        ],
      },
      wanted: [
        atLeast(
          'of the rate into an empty table',
          median(counted.map(({ empty, full }) => full.whole / empty.whole)),
          0.75,
        ),
      ],
    };
  },
};

/** The whole, and each of its parts. */
function medians(rates: readonly Rates[]): number[] {
  return [median(rates.map((each) => each.whole)), ...mediansByPart(rates.map((each) => each.parts))];
}

function shown(rates: Rates): string {
  return `${whole(rates.whole)} (${rates.parts.map(whole).join(', ')})`;
}

async function stateOf(database: BenchDatabase): Promise<{ rows: number; changeSeq: number }> {
  const [state] = await database.query<{ rows: number; changeSeq: number }>(
    'SELECT count(*)::int AS rows, coalesce(max(change_seq), 0)::float8 AS "changeSeq" FROM scanfeed.runs',
  );
  return state ?? { rows: 0, changeSeq: 0 };
}

const TIMES = ['submitted_at', 'completed_at', 'delivered_at'];

/**
 * Multiplies the runs that are there, under scan ids of their own, over the year up to yesterday: the table has grown run
 * by run, and those to come are newer than most of it.
 */
async function fill(database: BenchDatabase, rows: number, note: (text: string) => void): Promise<void> {
  await database.query(
    'CREATE TABLE sample AS SELECT row_number() OVER () - 1 AS number, run.* FROM scanfeed.runs AS run',
  );
  const columns = await database.query<{ name: string }>(`
    SELECT quote_ident(attname) AS name FROM pg_attribute
    WHERE attrelid = 'scanfeed.runs'::regclass AND attnum > 0 AND NOT attisdropped
      AND attname NOT IN ('scan_id', 'change_seq')`);
  const others = columns.map(({ name }) => name);
  const earlier = `interval '1 day' * (366 - 365.0 * made.number / ${rows})`;
  const values = others.map((name) => (TIMES.includes(name) ? `${name} - ${earlier}` : name));
  for (let first = 0; first < rows; first += AT_ONCE) {
    await database.query(
      `INSERT INTO scanfeed.runs (scan_id, change_seq, ${others.join()})
       SELECT gen_random_uuid()::text, nextval('scanfeed.change_seq'), ${values.join()}
       FROM generate_series($1::int, $2::int) AS made (number)
       JOIN sample ON sample.number = made.number % (SELECT count(*) FROM sample)`,
      [first, Math.min(rows, first + AT_ONCE) - 1],
    );
    note(`${whole(Math.min(rows, first + AT_ONCE))} rows`);
  }
  await database.query('DROP TABLE sample');
  // As in a table that has grown: the typed views know its documents, and do not look through millions meanwhile.
  await database.query('UPDATE scanfeed.report_progress SET change_seq = (SELECT max(change_seq) FROM scanfeed.runs)');
  await database.query('VACUUM ANALYZE scanfeed.runs');
}
