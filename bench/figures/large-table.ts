import { startService } from '../service/start.js';
import { atLeast, type Figure, whole } from '../support/figure.js';
import { multiplyRuns } from '../support/multiply-runs.js';
import { type BenchDatabase, startServer } from '../support/postgres.js';
import { mediansByPart, ratesByPart } from '../support/rates-by-part.js';
import { migratedDatabase, syncToTheEnd } from '../support/scanfeed-sync.js';
import { inScope } from '../support/scope.js';
import { median } from '../support/statistics.js';

const SAMPLE = 2_000;
const PARTS = 3;
/** PostgreSQL's defaults: unlike the other figures, this one includes the checkpoints that so much writing causes. */
const CHECKPOINTS = { max_wal_size: '1GB', checkpoint_timeout: '5min' };

interface Rates {
  readonly overall: number;
  readonly parts: readonly number[];
  /** That ended during the reading. */
  readonly checkpoints: number;
}

export const largeTable: Figure = {
  name: 'large-table',
  title: 'Five million rows in the table',
  method:
    '300,000 runs of the last thirty days are read into an empty table, and into one that holds five million others of the year up to yesterday already and keeps those of each round (5.3 to 6.8 million before those that count), by turns; medians of six rounds after one that warms up. Before each reading the table is vacuumed and a checkpoint is made; those that come during one are PostgreSQL’s own, at its default of 1 GB of log. Time runs from the start of the process, that of the thirds from the first commit.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const rows = quick ? 50_000 : 5_000_000;
    const history = quick ? 20_000 : 300_000;
    const server = await startServer(scope, CHECKPOINTS);
    const empty = await migratedDatabase(server);
    const full = await empty.clone();
    await inScope(async (inner) => {
      await syncToTheEnd(await startService(inner, { history: SAMPLE, seed: 1_000 }), full);
    });
    await multiplyRuns(full, rows, note);
    await server.checkpoint();
    const rounds: { empty: Rates; full: Rates }[] = [];
    for (let round = 0; round < (quick ? 2 : 7); round++) {
      rounds.push(
        await inScope(async (inner) => {
          // Others than before, and a feed that has not read them.
          const service = await startService(inner, { history, seed: round + 1 });
          const ratesInto = async (database: BenchDatabase): Promise<Rates> => {
            const [before] = await database.query<{ change: number }>(
              'SELECT coalesce(max(change_seq), 0)::float8 AS change FROM scanfeed.runs',
            );
            await database.query('VACUUM ANALYZE scanfeed.runs');
            const withOurs = (await checkpoints(database)) + 1;
            await server.checkpoint();
            const { seconds } = await syncToTheEnd(service, database, { SCANFEED_FEED: `round-${round}` });
            const parts = await ratesByPart(database, PARTS, before?.change);
            return { overall: history / seconds, parts, checkpoints: (await checkpoints(database)) - withOurs };
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
    const ofEmpty = ratios(counted);
    return {
      postgresVersion: server.version,
      table: {
        head: ['', 'runs/s', 'first third', 'second', 'last', 'checkpoints'],
        rows: [
          row(
            'into an empty table',
            counted.map((round) => round.empty),
          ),
          row(
            `into one of ${whole(rows)} rows`,
            counted.map((round) => round.full),
          ),
          ['of the rate into an empty table', ...ofEmpty.map((ratio) => ratio.toFixed(2)), ''],
        ],
      },
      wanted: [atLeast('of the rate into an empty table', ofEmpty[0] ?? Number.NaN, 0.75)],
    };
  },
};

function row(name: string, rates: readonly Rates[]): string[] {
  return [name, ...medians(rates).map(whole), median(rates.map((each) => each.checkpoints)).toFixed(1)];
}

/** The whole, and each of its parts. */
function medians(rates: readonly Omit<Rates, 'checkpoints'>[]): number[] {
  return [median(rates.map((each) => each.overall)), ...mediansByPart(rates.map((each) => each.parts))];
}

/** Large table to empty one, of the whole and of each part: medians of the rounds' own. */
function ratios(rounds: readonly { empty: Rates; full: Rates }[]): number[] {
  return medians(
    rounds.map(({ empty, full }) => ({
      overall: full.overall / empty.overall,
      parts: full.parts.map((rate, part) => rate / (empty.parts[part] ?? Number.NaN)),
    })),
  );
}

function shown({ overall, parts, checkpoints }: Rates): string {
  return `${whole(overall)} (${parts.map(whole).join(', ')}; ${checkpoints} checkpoints)`;
}

/** Since the server began. */
async function checkpoints(database: BenchDatabase): Promise<number> {
  const [made] = await database.query<{ count: number }>('SELECT num_done::int AS count FROM pg_stat_checkpointer');
  return made?.count ?? Number.NaN;
}
