import { randomUUID } from 'node:crypto';
import { MAX_JOINED_PAGES } from '../../src/sync/page/join-pages.js';
import type { Contested } from '../contestants/contest.js';
import { type Contestant, runContest } from '../contestants/run-contest.js';
import { type BenchService, startService } from '../service/start.js';
import { type CpuUse, startMeter } from '../support/cpu.js';
import { atLeast, type Bench, type Figure, type Findings, whole } from '../support/figure.js';
import { type BenchDatabase, type BenchServer, startServer } from '../support/postgres.js';
import { migratedDatabase, syncToTheEnd } from '../support/scanfeed-sync.js';
import { median } from '../support/statistics.js';

interface Measured extends Contested {
  readonly cpu: CpuUse;
}
type Name = 'scanfeed' | 'commits' | 'joined' | 'copy' | 'expert' | 'staging' | 'script' | 'engine';

const LABELS: Readonly<Record<Name, string>> = {
  scanfeed: 'scanfeed, from the start of its process',
  commits: 'its commit statement alone, pages in memory',
  joined: `the same, ${MAX_JOINED_PAGES} pages per statement`,
  copy: 'one bare `COPY` of the same rows into the same table',
  expert: 'an expert’s script: a page is one parameter of one statement, equal indexes',
  staging: 'the same with `COPY` into a staging table',
  script: 'a typical script: an upsert per row, autocommit',
  engine: 'a statement per row, five at a time',
};

export const coldSync: Figure = {
  name: 'cold-sync',
  title: 'Cold sync of a history',
  method:
    'A history of runs of 1.7 KB in pages of 200 is read into an empty database. The time of scanfeed runs from the start of its process until the commit that reached the end, and includes the creation of its tables. All other contestants are connected and ready when their time begins. The two contestants that write row by row read a twentieth of the history.',
  measure: async (bench) => {
    const history = bench.quick ? 5_000 : 100_000;
    const server = await startServer(bench.scope);
    const service = await startService(bench.scope, { history });
    const smaller = await startService(bench.scope, { history: history / 20 });
    const race = createRace(server, service, smaller, await prepareCopy(server, service));
    const rounds: Record<Name, Measured>[] = [];
    for (let round = 0; round < (bench.quick ? 2 : 5); round++) {
      bench.note(`round ${round + 1}`);
      rounds.push(await raceAll(race, bench));
    }
    return findings(rounds, server.version);
  },
};

type Race = Readonly<Record<Name, () => Promise<Measured>>>;

async function raceAll(race: Race, bench: Bench): Promise<Record<Name, Measured>> {
  const round: Partial<Record<Name, Measured>> = {};
  for (const name of Object.keys(LABELS) as Name[]) {
    const measured = await race[name]();
    round[name] = measured;
    bench.note(`${name} ${whole(rateOf(measured))} runs/s`);
  }
  return round as Record<Name, Measured>;
}

function createRace(
  server: BenchServer,
  service: BenchService,
  smaller: BenchService,
  { migrated, file }: { migrated: BenchDatabase; file: string },
): Race {
  const inDatabase = async (database: BenchDatabase, work: () => Promise<Contested>) => {
    await server.checkpoint();
    const meter = startMeter(server, service);
    const done = await work();
    const measured = { ...done, cpu: meter(done.cpuMs) };
    await database.drop();
    return measured;
  };
  const contested = async (contestant: Contestant, from: BenchService, database: BenchDatabase, pagesTogether = 1) => {
    await server.checkpoint();
    let meter = startMeter(server, from);
    const onStart = () => {
      meter = startMeter(server, from);
    };
    const done = await runContest(contestant, from, database, { onStart, pagesTogether });
    const measured = { ...done, cpu: meter(done.cpuMs) };
    await database.drop();
    return measured;
  };
  return {
    scanfeed: async () => {
      const database = await server.createDatabase();
      return inDatabase(database, () => syncToTheEnd(service, database));
    },
    commits: async () => contested('bare-commits', service, await migrated.clone()),
    joined: async () => contested('bare-commits', service, await migrated.clone(), MAX_JOINED_PAGES),
    copy: async () => {
      const database = await migrated.clone();
      return inDatabase(database, () => copyFrom(database, file));
    },
    expert: async () => contested('experts-script', service, await migrated.clone()),
    staging: async () => contested('copy-into-staging', service, await migrated.clone()),
    script: async () => contested('hand-written-script', smaller, await server.createDatabase()),
    engine: async () => contested('statement-a-row', smaller, await server.createDatabase()),
  };
}

/** The same rows as a file in the server's own folder. It is the warm-up of everything as well. */
async function prepareCopy(server: BenchServer, service: BenchService) {
  const migrated = await migratedDatabase(server);
  const filled = await migrated.clone();
  await syncToTheEnd(service, filled);
  const [setting] = await filled.query<{ data_directory: string }>('SHOW data_directory');
  const file = `${setting?.data_directory}/runs-${randomUUID()}.copy`;
  await filled.query(`COPY scanfeed.runs TO '${file}'`);
  await filled.drop();
  return { migrated, file };
}

function copyFrom(database: BenchDatabase, file: string): Promise<Contested> {
  return database.withClient(async (client) => {
    const started = performance.now();
    const { rowCount } = await client.query(`COPY scanfeed.runs FROM '${file}'`);
    return { runs: rowCount ?? 0, seconds: (performance.now() - started) / 1000, cpuMs: 0 };
  });
}

function findings(rounds: readonly Record<Name, Measured>[], postgresVersion: string): Findings {
  const names = Object.keys(LABELS) as Name[];
  const rateIn = (name: Name) => median(rounds.map((round) => rateOf(round[name])));
  const against = (name: Name) => median(rounds.map((round) => rateOf(round.scanfeed) / rateOf(round[name])));
  const cpu = (name: Name, process: keyof CpuUse) =>
    median(rounds.map(({ [name]: measured }) => (measured.cpu[process] / measured.runs) * 1000));
  return {
    postgresVersion,
    table: {
      head: ['', 'runs/s', 'scanfeed relative to it', 'CPU ms per 1,000 runs: writer', 'PostgreSQL', 'service'],
      rows: names.map((name) => [
        LABELS[name],
        whole(rateIn(name)),
        name === 'scanfeed' ? '' : `${against(name).toFixed(2)} ×`,
        ...(['writer', 'postgres', 'service'] as const).map((process) => whole(cpu(name, process))),
      ]),
    },
    wanted: [
      atLeast('rate relative to its commit statement alone, page by page', against('commits'), 0.9),
      atLeast('rate relative to a bare COPY', against('copy'), 0.5),
      atLeast('rate relative to the expert’s script', against('expert'), 1),
      atLeast('rate relative to the typical script', against('script'), 3),
    ],
  };
}

function rateOf({ runs, seconds }: Contested): number {
  return runs / seconds;
}
