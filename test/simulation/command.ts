/**
 * Runs histories from consecutive seeds on all cores until one breaks a promise or all are done.
 * Environment: SIMULATION_SEEDS (how many, 1,000,000), SIMULATION_FIRST_SEED (1), SIMULATION_PROCESSES (one a core).
 */
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { addCoverage, type Coverage, noCoverage, toldCoverage, toldProgress } from './coverage.js';
import type { ShardReport } from './shard-report.js';

const SHARD = fileURLToPath(new URL('./shard.js', import.meta.url));
/** Seeds handed to a process at once. */
const BATCH = 200;
const PROGRESS_EVERY_MS = 10_000;

await simulateAll(
  numberFrom('SIMULATION_FIRST_SEED', 1),
  numberFrom('SIMULATION_SEEDS', 1_000_000),
  numberFrom('SIMULATION_PROCESSES', availableParallelism()),
);

async function simulateAll(first: number, count: number, processes: number): Promise<void> {
  const startedAt = performance.now();
  const end = first + count;
  const total = noCoverage();
  let [next, failed] = [first, false];
  const report = () => console.log(toldProgress(total, (performance.now() - startedAt) / 1000, count));
  const progress = setInterval(report, PROGRESS_EVERY_MS);
  const take = () => {
    if (failed || next >= end) return null;
    const batch = { first: next, count: Math.min(BATCH, end - next) };
    next += batch.count;
    return batch;
  };
  const fail = (seed: number, message: string) => {
    failed = true;
    console.error(`seed ${seed}: ${message}\nagain: SIMULATION_FIRST_SEED=${seed} SIMULATION_SEEDS=1 npm run simulate`);
  };
  await Promise.all(Array.from({ length: processes }, () => runShard(take, total, fail)));
  clearInterval(progress);
  report();
  console.log(toldCoverage(total));
  process.exitCode = failed ? 1 : 0;
}

/** One process works off batches until there are none. Fails as a whole where it dies. */
function runShard(
  take: () => { first: number; count: number } | null,
  total: Coverage,
  fail: (seed: number, message: string) => void,
): Promise<void> {
  return new Promise((resolve) => {
    // A history leaves little behind, but much garbage; the other cores have shards of their own to run.
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
