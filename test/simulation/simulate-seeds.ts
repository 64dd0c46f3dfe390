import { NO_TALLY, type ShardReport, sum } from './shard-report.js';
import { simulate } from './simulate.js';

/** Histories from consecutive seeds, up to the first that breaks a promise. */
export async function simulateSeeds(first: number, count: number): Promise<ShardReport> {
  // Most errors here are meant to be, and nobody reads where they came from.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  let tally = NO_TALLY;
  try {
    for (let seed = first; seed < first + count; seed += 1) {
      try {
        tally = sum(tally, { seeds: 1, ...(await simulate(seed)) });
      } catch (error) {
        return { tally, failure: { seed, message: `${error instanceof Error ? error.message : error}` } };
      }
    }
    return { tally, failure: null };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
