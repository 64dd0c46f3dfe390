/**
 * Fails PostgreSQL over to a standby that lacks the last commits, again and again, while daemons read a feed, its history,
 * sweeps and backfills, and counts what was lost or falsely claimed: `npm run test:failovers`; with `-- --pgbouncer` by way
 * of PgBouncer, with `-- --unclean` on one server that is killed under `synchronous_commit=off`.
 *
 * FAILOVERS (20) is the number of failovers or kills, SEED (1) decides what happens. Ends with 0 if nothing was found wrong.
 */
import { findPgBouncer } from '../support/pgbouncer.js';
import { compileProgram } from '../support/program/compile-program.js';
import { type FailoverFigures, runFailovers } from './failovers/run-failovers.js';

const failovers = Number(process.env.FAILOVERS ?? 20);
const seed = Number(process.env.SEED ?? 1);
const throughPooler = process.argv.includes('--pgbouncer');
const single = process.argv.includes('--unclean');
const LIMIT_MS = 180_000 + failovers * 30_000;
const PROBLEMS_SHOWN = 50;

async function main(): Promise<number> {
  if (!(Number.isInteger(failovers) && failovers > 0 && Number.isInteger(seed))) {
    console.error('FAILOVERS and SEED must be whole numbers, FAILOVERS from 1');
    return 64;
  }
  const pgbouncer = throughPooler ? findPgBouncer() : null;
  if (throughPooler && pgbouncer === null) {
    console.error('pgbouncer is not installed; on Debian: apt-get install pgbouncer');
    return 1;
  }
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`${name} received`)));
  const late = setTimeout(() => stop.abort(new Error(`not done within ${LIMIT_MS / 1000} s`)), LIMIT_MS);
  const program = await compileProgram(process.cwd());
  const startedAt = performance.now();
  try {
    const log = (line: string) => console.log(line);
    const options = { program: program.path, failovers, seed, single, pgbouncer, log, signal: stop.signal };
    const figures = await runFailovers(options);
    return report(figures, Math.round((performance.now() - startedAt) / 1000));
  } finally {
    clearTimeout(late);
    await program.remove();
  }
}

function report(figures: FailoverFigures, seconds: number): number {
  const { kinds, lossy, problems } = figures;
  for (const problem of problems.slice(0, PROBLEMS_SHOWN)) console.log(problem);
  if (lossy * 2 < figures.failovers) console.log(`only ${lossy} failovers lost commits: this proves little`);
  const used = Object.entries(kinds).flatMap(([kind, count]) => (count === 0 ? [] : [`${kind} ${count}`]));
  console.log(
    `${figures.failovers} failovers (${used.join(', ')}), ${figures.transactionsLost} commits lost by the database in ` +
      `${lossy} of them, ${figures.runsListed} runs listed, runs lost ${figures.runsLost}, ${figures.looks} looks, ` +
      `false claims ${figures.falseClaims}, ${problems.length} problems, ${seconds} s, seed ${seed}`,
  );
  return problems.length === 0 && lossy * 2 >= figures.failovers ? 0 : 1;
}

process.exitCode = await main().catch((error) => {
  console.error(error);
  return 1;
});
