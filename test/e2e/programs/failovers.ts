/**
 * Fails PostgreSQL over to a standby that lacks the last commits, again and again, while daemons read a feed and run passes
 * of every kind, and counts what was lost or falsely claimed: `.ci/program failovers`; with `--pgbouncer` by way
 * of PgBouncer, with `--unclean` on one server that is killed under `synchronous_commit=off`.
 *
 * FAILOVERS (20) is the number of failovers or kills, SEED (1) decides what happens. Ends with 0 if nothing was found wrong.
 */
import { type FailoverFigures, runFailovers } from './failovers/run-failovers.js';
import { runCommand } from './support/run-command.js';

const single = process.argv.includes('--unclean');
const PROBLEMS_SHOWN = 50;

await runCommand(
  { variable: 'FAILOVERS', defaultCount: 20, limitMs: (failovers) => 180_000 + failovers * 30_000 },
  async ({ count, elapsedSeconds, ...given }) => {
    const figures = await runFailovers({ ...given, failovers: count, single });
    return report(figures, elapsedSeconds(), given.seed);
  },
);

/** Prints the figures. Returns whether they are as promised. */
function report(figures: FailoverFigures, seconds: number, seed: number): boolean {
  const { kinds, lossy, problems } = figures;
  for (const problem of problems.slice(0, PROBLEMS_SHOWN)) console.log(problem);
  if (lossy * 2 < figures.failovers) console.log(`only ${lossy} failovers lost commits: this proves little`);
  const used = Object.entries(kinds).flatMap(([kind, count]) => (count === 0 ? [] : [`${kind} ${count}`]));
  console.log(
    `${figures.failovers} failovers (${used.join(', ')}), ${figures.transactionsLost} commits lost by the database in ` +
      `${lossy} of them, ${figures.runsListed} runs listed, runs lost ${figures.runsLost}, ${figures.checks} checks, ` +
      `false claims ${figures.falseClaims}, ${problems.length} problems, ${seconds} s, seed ${seed}`,
  );
  return problems.length === 0 && lossy * 2 >= figures.failovers;
}
