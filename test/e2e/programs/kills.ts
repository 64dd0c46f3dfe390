/**
 * Kills daemons, their database and their pooler with SIGKILL while they follow feeds that do not rest, and counts
 * what was lost: `.ci/program kills`, with `--pgbouncer` by way of PgBouncer.
 *
 * KILLS (500) says how many daemons are killed, FEEDS (1) how many feeds they follow, SEED (1) what happens when. Several feeds are
 * followed by three daemons. Ends with 0 if nothing was found wrong.
 */
import { runKills } from './kills/run-kills.js';
import { runCommand } from './support/run-command.js';

await runCommand(
  { variable: 'KILLS', defaultCount: 500, limitMs: (kills) => 120_000 + kills * 5_000 },
  async ({ count, elapsedSeconds, ...given }) => {
    const feeds = Number(process.env.FEEDS ?? 1);
    if (!(Number.isInteger(feeds) && feeds > 0)) throw new RangeError('FEEDS must be a whole number from 1');
    const figures = await runKills({ ...given, kills: count, feeds, history: 5_000, killsAPhase: 25 });
    const { steps, runs, superseded, epochs, longestUnledMs, problems } = figures;
    console.log(
      `steps: ${Object.entries(steps)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(', ')}`,
    );
    for (const problem of problems.slice(0, 50)) console.log(problem);
    console.log(
      `${figures.kills} kills, ${epochs} times a new leader, at most ${(longestUnledMs / 1000).toFixed(1)} s without one, ` +
        `${runs} runs, ${superseded} superseded, ` +
        `${problems.length} problems, ${elapsedSeconds()} s, seed ${given.seed}`,
    );
    return problems.length === 0;
  },
);
