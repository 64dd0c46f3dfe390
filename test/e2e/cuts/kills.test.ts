import { expect, inject, it } from 'vitest';
import { findPgBouncer } from '../../support/pgbouncer.js';
import { runKills } from '../programs/kills/run-kills.js';

/** Number of kills; `.ci/program kills` does more. */
const KILLS = 6;
const HISTORY = 2_000;
const LIMIT_MS = 240_000;

it.each([
  ['directly', null],
  ['through PgBouncer, if it is installed,', findPgBouncer()],
])(
  'loses and reverts nothing when daemons connected %s are killed repeatedly',
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
