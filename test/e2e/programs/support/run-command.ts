import { findPgBouncer } from '../../../support/pgbouncer.js';
import { compileProgram } from '../../../support/program/compile-program.js';

export interface CommandOptions {
  /** Environment variable with the number of kills or failovers. */
  readonly variable: string;
  readonly defaultCount: number;
  readonly limitMs: (count: number) => number;
}

/** What a test program is run with. */
export interface CommandRun {
  /** The compiled bin. */
  readonly program: string;
  readonly count: number;
  readonly seed: number;
  /** The program `pgbouncer`; null unless `--pgbouncer` was given. */
  readonly pgbouncer: string | null;
  readonly log: (line: string) => void;
  /** Aborts on SIGINT, on SIGTERM and after the time limit. */
  readonly signal: AbortSignal;
  readonly elapsedSeconds: () => number;
}

/**
 * Runs a test program with its settings from the environment (SEED is 1 by default) and the command line. Exits
 * with 0 if `run` returned true, 64 for wrong settings, else 1.
 */
export async function runCommand(options: CommandOptions, run: (given: CommandRun) => Promise<boolean>): Promise<void> {
  const exitCode = await exitCodeOf(options, run).catch((error) => {
    console.error(error);
    return 1;
  });
  // Without it, Node 20 has waited forever for a socket that was gone.
  process.exit(exitCode);
}

async function exitCodeOf(
  { variable, defaultCount, limitMs }: CommandOptions,
  run: (given: CommandRun) => Promise<boolean>,
): Promise<number> {
  const count = Number(process.env[variable] ?? defaultCount);
  const seed = Number(process.env.SEED ?? 1);
  if (!(Number.isInteger(count) && count > 0 && Number.isInteger(seed))) {
    console.error(`${variable} and SEED must be whole numbers, ${variable} from 1`);
    return 64;
  }
  const throughPooler = process.argv.includes('--pgbouncer');
  const pgbouncer = throughPooler ? findPgBouncer() : null;
  if (throughPooler && pgbouncer === null) {
    console.error('pgbouncer is not installed; on Debian: apt-get install pgbouncer');
    return 1;
  }
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`${name} received`)));
  const limit = limitMs(count);
  const late = setTimeout(() => stop.abort(new Error(`not done within ${limit / 1000} s`)), limit);
  const program = await compileProgram(process.cwd());
  const startedAt = performance.now();
  try {
    const succeeded = await run({
      ...{ program: program.path, count, seed, pgbouncer, signal: stop.signal },
      log: (line) => console.log(line),
      elapsedSeconds: () => Math.round((performance.now() - startedAt) / 1000),
    });
    return succeeded ? 0 : 1;
  } finally {
    clearTimeout(late);
    await program.remove();
  }
}
