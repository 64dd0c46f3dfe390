import { expect, inject, it } from 'vitest';
import { findPgBouncer } from '../../support/pgbouncer.js';
import { runKills } from '../programs/kills/run-kills.js';

/** A small share; `.ci/program kills` has the rest. */
const KILLS = 6;
const HISTORY = 2_000;
const LIMIT_MS = 240_000;

it.each([
  ['straight', null],
  ['by way of PgBouncer, where it is installed,', findPgBouncer()],
])(
  'daemons that are killed again and again, %s lose nothing and take nothing back',
  { timeout: LIMIT_MS },
  async (_, pgbouncer) => {
    const figures = await runKills({
      program: inject('programPath'),
      kills: KILLS,
      seed: pgbouncer === null ? 20 : 21,
      pgbouncer,
      history: HISTORY,
      killsAPhase: KILLS,
      log: (line) => console.info(line),
      signal: AbortSignal.timeout(LIMIT_MS - 10_000),
    });
    expect(figures.problems).toEqual([]);
    expect(figures.kills).toBeGreaterThanOrEqual(KILLS);
    expect(figures.epochs).toBeGreaterThan(2);
    expect(figures.runs).toBeGreaterThan(HISTORY);
  },
);
