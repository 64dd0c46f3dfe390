import { describe, expect, it } from 'vitest';
import { cases } from '../support/thorough.js';
import { toldCoverage, toldProgress, uncovered } from './coverage.js';
import { simulateSeeds } from './simulate-seeds.js';

const count = Number(process.env.SIMULATION_SEEDS ?? cases(250, 500));
const first = Number(process.env.SIMULATION_FIRST_SEED ?? 1);

describe('the promises hold', () => {
  it(`at every commit of ${count} histories of faults, from seed ${first} on, and after the last fault`, async () => {
    const startedAt = performance.now();
    const { coverage, failure } = await simulateSeeds(first, count);
    const again = `SIMULATION_FIRST_SEED=${failure?.seed} SIMULATION_SEEDS=1 npm run simulate`;
    expect(failure, failure === null ? '' : `seed ${failure.seed}: ${failure.message} (again: ${again})`).toBeNull();
    const seconds = (performance.now() - startedAt) / 1000;
    console.info(`${toldProgress(coverage, seconds, count)}\n${toldCoverage(coverage)}`);
    // A small number of histories may lack some events.
    if (count >= 250) expect(uncovered(coverage), 'this never happened').toEqual([]);
  }, 3_600_000);
});
