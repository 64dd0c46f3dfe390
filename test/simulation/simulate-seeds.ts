import { addCoverage, noCoverage } from './coverage.js';
import type { ShardReport } from './shard-report.js';
import { simulate } from './simulate.js';

/** Simulates histories of consecutive seeds until one breaks a promise. */
export async function simulateSeeds(first: number, count: number): Promise<ShardReport> {
  // Most errors here are intended, and nobody reads their stack traces.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const coverage = noCoverage();
  try {
    for (let seed = first; seed < first + count; seed += 1) {
      try {
        addCoverage(coverage, await simulate(seed));
      } catch (error) {
        return { coverage, failure: { seed, message: `${error instanceof Error ? error.message : error}` } };
      }
    }
    return { coverage, failure: null };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
