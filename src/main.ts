#!/usr/bin/env node
import { Command } from 'commander';
import { EXIT, explain } from './cli/exit.js';
import { endOnSignals } from './cli/first-process.js';
import { packageVersion } from './cli/version.js';

/** One file a command; only the one that is asked for is loaded, so that the daemon starts quickly. */
const COMMANDS: Readonly<Record<string, () => Promise<{ register(program: Command): void }>>> = {
  run: () => import('./cli/run.js'),
  migrate: () => import('./cli/migrate.js'),
  status: () => import('./cli/status.js'),
  doctor: () => import('./cli/doctor.js'),
  verify: () => import('./cli/verify.js'),
  resolve: () => import('./cli/resolve.js'),
  quarantine: () => import('./cli/quarantine.js'),
  rewind: () => import('./cli/rewind.js'),
  adopt: () => import('./cli/adopt.js'),
  backfill: () => import('./cli/backfill.js'),
  reconcile: () => import('./cli/reconcile.js'),
  views: () => import('./cli/views.js'),
  erase: () => import('./cli/erase.js'),
  submit: () => import('./cli/submit.js'),
  get: () => import('./cli/get.js'),
  emulator: () => import('./cli/emulator.js'),
  demo: () => import('./cli/demo.js'),
};

async function main(args: readonly string[]): Promise<number> {
  const program = new Command('scanfeed')
    .description('Keeps a PostgreSQL database in step with the delivery feed of a Document Recognition Service.')
    .version(packageVersion())
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(`scanfeed: ${usageError(text)}\n`) });
  try {
    for (const load of commandsFor(args)) (await load()).register(program);
    await program.parseAsync(args, { from: 'user' });
    return EXIT.done;
  } catch (error) {
    const { message, exitCode } = explain(error);
    if (message !== null) process.stderr.write(`scanfeed: ${message}\n`);
    return exitCode;
  }
}

/** The command that is asked for; all of them where it is none, so that the help lists them. */
function commandsFor(args: readonly string[]) {
  const asked = args.find((argument) => !argument.startsWith('-')) ?? '';
  const load = Object.hasOwn(COMMANDS, asked) ? COMMANDS[asked] : undefined;
  return load === undefined ? Object.values(COMMANDS) : [load];
}

/** Commander's message as one line, with where to look. */
function usageError(text: string): string {
  return `${text
    .replace(/^error: /, '')
    .trim()
    .replaceAll(/\s+/g, ' ')} (see --help)`;
}

/** All that was written has gone out, or nobody reads it any more. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()));
}

endOnSignals(process);
const outputs = [process.stdout, process.stderr];
// A reader that has gone (`scanfeed … | head`) is no reason to fail; writing on is without effect.
for (const output of outputs) output.on('error', () => {});
const exitCode = await main(process.argv.slice(2));
await Promise.all(outputs.map(flushed));
// What is still open then (a statement or a connection that says nothing) must not keep a command that is over.
process.exit(exitCode);
