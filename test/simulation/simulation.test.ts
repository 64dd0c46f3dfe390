import { describe, expect, it } from 'vitest';
import { cases } from '../support/thorough.js';
import { describeCoverage, describeProgress, uncovered } from './coverage.js';
import { simulateSeeds } from './simulate-seeds.js';

const count = Number(process.env.SIMULATION_SEEDS ?? cases(250, 500));
const first = Number(process.env.SIMULATION_FIRST_SEED ?? 1);

describe('simulation', () => {
  it(`keeps every promise when faults occur in ${count} histories, starting with seed ${first}`, async () => {
    const startedAt = performance.now();
    const { coverage, failure } = await simulateSeeds(first, count);
    const command = `SIMULATION_FIRST_SEED=${failure?.seed} SIMULATION_SEEDS=1 npm run simulate`;
    expect(
      failure,
      failure === null ? '' : `seed ${failure.seed}: ${failure.message} (to reproduce: ${command})`,
    ).toBeNull();
    const seconds = (performance.now() - startedAt) / 1000;
    console.info(`${describeProgress(coverage, seconds, count)}\n${describeCoverage(coverage)}`);
    // A small number of histories may lack some events.
    if (count >= 250) expect(uncovered(coverage), 'events that never happened').toEqual([]);
  }, 3_600_000);
});
