import { expect, inject, it } from 'vitest';
import { findPgBouncer } from '../../support/pgbouncer.js';
import { runKills } from '../programs/kills/run-kills.js';

/** Number of kills; `.ci/program kills` does more. */
const KILLS = 6;
const HISTORY = 2_000;
const LIMIT_MS = 240_000;

it.each([
  ['one feed', 'directly', 1, null],
  ['twelve feeds', 'directly', 12, null],
  ['one feed', 'through PgBouncer, if it is installed,', 1, findPgBouncer()],
])(
  'loses and reverts nothing when daemons that follow %s, connected %s are killed repeatedly',
  { timeout: LIMIT_MS },
  async (_, __, feeds, pgbouncer) => {
    const figures = await runKills({
      program: inject('programPath'),
      kills: KILLS,
      feeds,
      seed: 20 + feeds + (pgbouncer === null ? 0 : 1),
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
