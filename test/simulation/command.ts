/**
 * Simulates histories on all cores until one breaks a promise or all have run: first the seeds that failed before, then a
 * random range of consecutive seeds. With SIMULATION_FIRST_SEED only the range that begins there is run. Environment:
 * SIMULATION_SEEDS (length of the range, default 1,000,000), SIMULATION_FIRST_SEED, TEST_SEED (chooses the range),
 * SIMULATION_PROCESSES (default: one per core).
 */
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { addCoverage, type Coverage, describeCoverage, describeProgress, noCoverage } from './coverage.js';
import { FAILED_SEEDS } from './failed-seeds.js';
import type { ShardReport } from './shard-report.js';

const SHARD = fileURLToPath(new URL('./shard.js', import.meta.url));
/** Number of seeds per batch that a process simulates. */
const BATCH = 200;
const PROGRESS_EVERY_MS = 10_000;
/** Upper limit of the first seed of a random range. */
const FIRST_SEED_LIMIT = 1_000_000_000;

const count = numberFrom('SIMULATION_SEEDS', 1_000_000);
const given = numberFrom('SIMULATION_FIRST_SEED', 0);
const first = given || numberFrom('TEST_SEED', 0) * count || randomInt(1, FIRST_SEED_LIMIT);
const failedBefore = given ? [] : FAILED_SEEDS.map((seed) => ({ first: seed, count: 1 }));
console.log(
  `seeds ${first} to ${first + count - 1}${given ? '' : `, after ${FAILED_SEEDS.length} seeds that failed before`}`,
);
await simulateAll([...failedBefore, { first, count }], numberFrom('SIMULATION_PROCESSES', availableParallelism()));

interface SeedRange {
  readonly first: number;
  readonly count: number;
}

async function simulateAll(ranges: readonly SeedRange[], processes: number): Promise<void> {
  const startedAt = performance.now();
  const batches = inBatches(ranges);
  const count = ranges.reduce((sum, range) => sum + range.count, 0);
  const total = noCoverage();
  let failed = false;
  const report = () => console.log(describeProgress(total, (performance.now() - startedAt) / 1000, count));
  const progress = setInterval(report, PROGRESS_EVERY_MS);
  const take = () => (failed ? null : (batches.next().value ?? null));
  const fail = (seed: number, message: string) => {
    failed = true;
    console.error(
      `seed ${seed}: ${message}\nto reproduce: SIMULATION_FIRST_SEED=${seed} SIMULATION_SEEDS=1 npm run simulate`,
    );
  };
  await Promise.all(Array.from({ length: processes }, () => runShard(take, total, fail)));
  clearInterval(progress);
  report();
  console.log(describeCoverage(total));
  process.exitCode = failed ? 1 : 0;
}

function* inBatches(ranges: readonly SeedRange[]): Generator<SeedRange, undefined> {
  for (const { first, count } of ranges) {
    const end = first + count;
    for (let next = first; next < end; next += BATCH) yield { first: next, count: Math.min(BATCH, end - next) };
  }
}

/** Runs batches in one process until none is left. Calls `fail` if a history fails or the process dies. */
function runShard(
  take: () => SeedRange | null,
  total: Coverage,
  fail: (seed: number, message: string) => void,
): Promise<void> {
  return new Promise((resolve) => {
    // A history keeps little data but produces much garbage. The other cores are busy with their own shards.
    const shard = fork(SHARD, [], {
      execArgv: ['--min-semi-space-size=32', '--max-semi-space-size=32', '--single-threaded-gc'],
    });
    let [current, over] = [Number.NaN, false];
    const handOut = () => {
      const batch = take();
      over = batch === null;
      if (batch === null) return shard.disconnect();
      current = batch.first;
      shard.send(batch);
    };
    shard.on('message', (report: ShardReport) => {
      addCoverage(total, report.coverage);
      if (report.failure !== null) fail(report.failure.seed, report.failure.message);
      handOut();
    });
    shard.on('exit', (code, signal) => {
      if (!over) fail(current, `the process died (${signal ?? code}) in the batch that begins with this seed`);
      resolve();
    });
    handOut();
  });
}

function numberFrom(name: string, fallback: number): number {
  const given = process.env[name];
  if (given === undefined || given === '') return fallback;
  if (!/^[1-9]\d*$/.test(given)) throw new Error(`${name} is not a whole number from 1 on`);
  return Number(given);
}
