import { startService } from '../service/start.js';
import { type Figure, whole } from '../support/figure.js';
import { type BenchDatabase, startServer } from '../support/postgres.js';
import { migratedDatabase, type Synced, syncToTheEnd } from '../support/scanfeed-sync.js';
import { median } from '../support/statistics.js';

export const feeds: Figure = {
  name: 'feeds',
  title: 'Two feeds on one server',
  method:
    'One daemon reads a history alone. Then two daemons read different histories at once: into the tables of one database, where commits run one after the other, and into separate databases. Time runs from the start of the first process until the end of the last feed is committed. Rates and ratios are medians of four rounds. A ratio compares rates of the same round, so it differs from the ratio of the medians.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const history = quick ? 2_000 : 40_000;
    const services = [
      await startService(scope, { history, seed: 1 }),
      await startService(scope, { history, seed: 2 }),
    ] as const;
    const server = await startServer(scope);
    const migrated = await migratedDatabase(server);
    const rateOf = async (feedsAtOnce: number, databases: readonly BenchDatabase[]) => {
      await server.checkpoint();
      const synced = await Promise.all(
        services.slice(0, feedsAtOnce).map((service, index) => {
          const database = databases[index % databases.length] as BenchDatabase;
          return syncToTheEnd(service, database, { SCANFEED_FEED: `feed-${index}` });
        }),
      );
      for (const database of databases) await database.drop();
      return (feedsAtOnce * history) / lasted(synced);
    };
    const rounds: { alone: number; shared: number; apart: number }[] = [];
    for (let round = 0; round < (quick ? 1 : 4); round++) {
      rounds.push({
        alone: await rateOf(1, [await migrated.clone()]),
        shared: await rateOf(2, [await migrated.clone()]),
        apart: await rateOf(2, [await migrated.clone(), await migrated.clone()]),
      });
      const { alone, shared, apart } = rounds.at(-1) as (typeof rounds)[number];
      note(`round ${round + 1}: alone ${whole(alone)}, shared ${whole(shared)}, apart ${whole(apart)} runs/s`);
    }
    const row = (what: string, kind: keyof (typeof rounds)[number]) => [
      what,
      whole(median(rounds.map((round) => round[kind]))),
      `${median(rounds.map((round) => round[kind] / round.alone)).toFixed(2)} ×`,
    ];
    return {
      postgresVersion: server.version,
      table: {
        head: ['', 'runs/s together', 'relative to one feed'],
        rows: [
          row('one feed', 'alone'),
          row('two feeds, tables of one database', 'shared'),
          row('two feeds, separate databases', 'apart'),
        ],
      },
      wanted: [],
    };
  },
};

/** Seconds from the start of the first until the end of the last. */
function lasted(synced: readonly Synced[]): number {
  const begun = Math.min(...synced.map(({ endedAt, seconds }) => endedAt - seconds * 1000));
  return (Math.max(...synced.map(({ endedAt }) => endedAt)) - begun) / 1000;
}
