import { describe, expect, it } from 'vitest';
import { simulate } from './simulate.js';

const count = Number(process.env.SIMULATION_SEEDS ?? 500);
const first = Number(process.env.SIMULATION_FIRST_SEED ?? 1);

describe('the promises hold', () => {
  it(`at every commit of ${count} histories of faults, from seed ${first} on`, async () => {
    const startedAt = performance.now();
    const total = { commits: 0, crashes: 0, resets: 0, rows: 0 };
    for (let seed = first; seed < first + count; seed += 1) {
      const course = await simulate(seed).catch((error: Error) => {
        throw new Error(`seed ${seed}: ${error.message} (again: SIMULATION_FIRST_SEED=${seed} SIMULATION_SEEDS=1)`, {
          cause: error,
        });
      });
      total.commits += course.commits;
      total.crashes += course.crashes;
      total.resets += course.resets;
      total.rows += course.rows;
    }
    const seconds = (performance.now() - startedAt) / 1000;
    console.info(
      `${count} histories, ${total.commits} commits, ${total.crashes} crashes, ${total.resets} cursors left, ${total.rows} rows: ${(count / seconds).toFixed(0)} seeds/s`,
    );
    expect(total.commits).toBeGreaterThan(count);
  }, 3_600_000);
});
