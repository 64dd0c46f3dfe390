import { randomInt } from 'node:crypto';
import { startService } from '../service/start.js';
import { atLeast, type Figure, whole } from '../support/figure.js';
import { multiplyRuns } from '../support/multiply-runs.js';
import { type BenchDatabase, type BenchServer, startServer } from '../support/postgres.js';
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

interface Round {
  readonly empty: Rates;
  readonly full: Rates;
}

interface Plan {
  /** Numbers of rows in the table, ascending. */
  readonly sizes: readonly number[];
  /** Runs read in each round. */
  readonly history: number;
  readonly rounds: number;
}

const PLAN: Plan = { sizes: [1_000_000, 5_000_000, 20_000_000], history: 100_000, rounds: 5 };
const QUICK_PLAN: Plan = { sizes: [20_000, 50_000], history: 10_000, rounds: 2 };

export const growth: Figure = {
  name: 'growth',
  title: 'A growing table',
  method:
    '100,000 runs of the last thirty days are read alternately into an empty table and into a large table. Figures are medians of five rounds. The large table contains runs of the past year and keeps the runs of each round. Before each reading the table is vacuumed and a checkpoint is made. During a reading PostgreSQL makes checkpoints by its defaults, after 1 GB of log. Time runs from the start of the process. The thirds of a reading are timed from its first commit. *Disk* is the size of the table with its indexes and out-of-line values, *key* the size of the index of scan ids.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const plan = quick ? QUICK_PLAN : PLAN;
    const server = await startServer(scope, CHECKPOINTS);
    const empty = await migratedDatabase(server);
    const full = await empty.clone();
    await inScope(async (inner) => {
      await syncToTheEnd(await startService(inner, { history: SAMPLE, seed: 1_000 }), full);
    });
    let present = 0;
    const measured: { rows: number; rounds: readonly Round[]; sizes: Sizes }[] = [];
    for (const rows of plan.sizes) {
      await multiplyRuns(full, rows, note, { sample: SAMPLE, present });
      present = rows;
      const rounds = await measureRounds({ server, empty, full, note }, plan);
      measured.push({ rows, rounds, sizes: await readSizes(full) });
    }
    return {
      postgresVersion: server.version,
      table: {
        head: ['', 'runs/s', 'relative to the empty table', 'the same by thirds', 'checkpoints', 'disk', 'key'],
        rows: [
          [
            'into an empty table',
            ...shownRates(measured.flatMap(({ rounds }) => rounds.map(({ empty: rates }) => rates))),
            '',
            '',
          ],
          ...measured.map(({ rows, rounds, sizes }) => [
            `into one of ${whole(rows)} rows`,
            ...shownRates(
              rounds.map(({ full: rates }) => rates),
              ratios(rounds),
            ),
            gigabytes(sizes.table),
            gigabytes(sizes.key),
          ]),
        ],
      },
      wanted: measured.map(({ rows, rounds }) =>
        atLeast(`rate at ${whole(rows)} rows, relative to the empty table`, ratios(rounds)[0] ?? Number.NaN, 0.7),
      ),
      notes: [`\`shared_buffers\` is ${measured[0]?.sizes.buffers ?? ''}.`],
    };
  },
};

interface Contest {
  readonly server: BenchServer;
  readonly empty: BenchDatabase;
  readonly full: BenchDatabase;
  readonly note: (text: string) => void;
}

async function measureRounds({ server, empty, full, note }: Contest, { history, rounds }: Plan): Promise<Round[]> {
  const measured: Round[] = [];
  for (let round = 1; round <= rounds; round++) {
    await inScope(async (scope) => {
      // Others than before, and a feed that has not read them.
      const seed = randomInt(1_000_000);
      const service = await startService(scope, { history, seed });
      const ratesInto = async (database: BenchDatabase): Promise<Rates> => {
        const [before] = await database.query<{ change: number }>(
          'SELECT coalesce(max(change_seq), 0)::float8 AS change FROM scanfeed.runs',
        );
        await database.query('VACUUM ANALYZE scanfeed.runs');
        const withOurs = (await checkpoints(database)) + 1;
        await server.checkpoint();
        const { seconds } = await syncToTheEnd(service, database, { SCANFEED_FEED: `seed-${seed}` });
        const parts = await ratesByPart(database, PARTS, before?.change);
        return { overall: history / seconds, parts, checkpoints: (await checkpoints(database)) - withOurs };
      };
      const fresh = await empty.clone();
      const rates = { empty: await ratesInto(fresh), full: await ratesInto(full) };
      await fresh.drop();
      note(`round ${round}: empty ${shown(rates.empty)}, full ${shown(rates.full)} runs/s`);
      measured.push(rates);
    });
  }
  return measured;
}

/** Of the runs and their indexes, bytes. */
interface Sizes {
  readonly table: number;
  readonly key: number;
  readonly buffers: string;
}

async function readSizes(database: BenchDatabase): Promise<Sizes> {
  const [sizes] = await database.query<{ table: string; key: string; buffers: string }>(`
    SELECT pg_total_relation_size('scanfeed.runs') AS table, pg_relation_size('scanfeed.runs_pkey') AS key,
      current_setting('shared_buffers') AS buffers`);
  if (sizes === undefined) throw new TypeError('PostgreSQL did not return the sizes');
  return { table: Number(sizes.table), key: Number(sizes.key), buffers: sizes.buffers };
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

/** @param ofEmpty ratios, as a whole and by part */
function shownRates(rates: readonly Rates[], ofEmpty?: readonly number[]): string[] {
  const [overall = Number.NaN, ...parts] = medians(rates);
  return [
    whole(overall),
    ofEmpty?.[0]?.toFixed(2) ?? '',
    (ofEmpty?.slice(1).map((ratio) => ratio.toFixed(2)) ?? parts.map(whole)).join(', '),
    median(rates.map((each) => each.checkpoints)).toFixed(1),
  ];
}

/** The whole, and each of its parts. */
function medians(rates: readonly Omit<Rates, 'checkpoints'>[]): number[] {
  return [median(rates.map((each) => each.overall)), ...mediansByPart(rates.map((each) => each.parts))];
}

/** Large table to empty one, of the whole and of each part: medians of the rounds' own. */
function ratios(rounds: readonly Round[]): number[] {
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
