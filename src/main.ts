#!/usr/bin/env node
import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { Command } from 'commander';
import { watchOutput } from './cli/context/command-process.js';
import { EXIT, EXIT_HELP, explain } from './cli/context/exit.js';
import { endOnSignals } from './cli/context/stop-signals.js';
import { packageVersion } from './core/package.js';

/** One file for each command. Only the requested command is loaded, so that the daemon starts quickly. */
const COMMANDS: Readonly<Record<string, () => Promise<{ register(program: Command): void }>>> = {
  run: () => import('./cli/commands/run.js'),
  migrate: () => import('./cli/commands/migrate.js'),
  status: () => import('./cli/commands/status.js'),
  doctor: () => import('./cli/commands/doctor.js'),
  verify: () => import('./cli/commands/verify.js'),
  resolve: () => import('./cli/commands/resolve.js'),
  quarantine: () => import('./cli/commands/quarantine.js'),
  rewind: () => import('./cli/commands/rewind.js'),
  forget: () => import('./cli/commands/forget.js'),
  backfill: () => import('./cli/commands/backfill.js'),
  reconcile: () => import('./cli/commands/reconcile.js'),
  sql: () => import('./cli/commands/sql.js'),
  views: () => import('./cli/commands/views.js'),
  erase: () => import('./cli/commands/erase.js'),
  submit: () => import('./cli/commands/submit.js'),
  get: () => import('./cli/commands/get.js'),
  completion: () => import('./cli/commands/completion.js'),
  emulator: () => import('./cli/commands/emulator.js'),
  demo: () => import('./cli/commands/demo.js'),
};

async function main(args: readonly string[]): Promise<number> {
  const program = new Command('scanfeed')
    .description('Keeps a PostgreSQL database in step with the delivery feed of a Document Recognition Service.')
    .version(packageVersion())
    .addHelpText('afterAll', EXIT_HELP)
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

/** Returns the requested command, or all of them if there is none, or the command describes them. */
function commandsFor(args: readonly string[]) {
  const requested = args.find((argument) => !argument.startsWith('-')) ?? '';
  const load = Object.hasOwn(COMMANDS, requested) ? COMMANDS[requested] : undefined;
  return load === undefined || requested === 'completion' ? Object.values(COMMANDS) : [load];
}

/** Returns Commander's message in one line, with a reference to the help. */
function usageError(text: string): string {
  return `${text
    .replace(/^error: /, '')
    .trim()
    .replaceAll(/\s+/g, ' ')} (see --help)`;
}

endOnSignals(process);
const terminals = [0, 1, 2].filter(isatty);
const results = watchOutput(process.stdout);
const notes = watchOutput(process.stderr);
const exitCode = await main(process.argv.slice(2));
const lost = await results.flushed();
if (lost !== null) process.stderr.write(`scanfeed: not all of the output could be written: ${lost}\n`);
await notes.flushed();
// Node aborts when it restores a terminal that has gone, unless the descriptor is closed.
for (const descriptor of terminals) if (!isatty(descriptor)) closeSync(descriptor);
// A statement or connection that is still open must not keep a finished command running.
process.exit(lost === null ? exitCode : exitCode || EXIT.failed);
