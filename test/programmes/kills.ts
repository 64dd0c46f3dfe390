/**
 * Kills daemons, their database and their pooler with SIGKILL while they follow a feed that does not rest, and counts
 * what was lost: `npm run test:kills`, with `-- --pgbouncer` by way of PgBouncer.
 *
 * KILLS (500) says how many daemons are killed, SEED (1) what happens when. Ends with 0 if nothing was found wrong.
 */
import { findPgBouncer } from '../support/pgbouncer.js';
import { compileProgram } from '../support/program/compile-program.js';
import { runKills } from './kills/run-kills.js';

const kills = Number(process.env.KILLS ?? 500);
const seed = Number(process.env.SEED ?? 1);
const throughPooler = process.argv.includes('--pgbouncer');
const LIMIT_MS = 120_000 + kills * 5_000;

async function main(): Promise<number> {
  if (!(Number.isInteger(kills) && kills > 0 && Number.isInteger(seed))) {
    console.error('KILLS and SEED must be whole numbers, KILLS from 1');
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
    const options = {
      program: program.path,
      kills,
      seed,
      pgbouncer,
      history: 5_000,
      killsAPhase: 25,
      signal: stop.signal,
    };
    const figures = await runKills({ ...options, log: (line) => console.log(line) });
    const { steps, runs, superseded, epochs, problems } = figures;
    console.log(
      `steps: ${Object.entries(steps)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(', ')}`,
    );
    for (const problem of problems.slice(0, 50)) console.log(problem);
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    console.log(
      `${figures.kills} kills, ${epochs} times a new leader, ${runs} runs, ${superseded} superseded, ` +
        `${problems.length} problems, ${seconds} s, seed ${seed}`,
    );
    return problems.length === 0 ? 0 : 1;
  } finally {
    clearTimeout(late);
    await program.remove();
  }
}

process.exitCode = await main().catch((error) => {
  console.error(error);
  return 1;
});
