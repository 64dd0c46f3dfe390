#!/usr/bin/env node
import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { Command } from 'commander';
import { EXIT, EXIT_HELP, explain } from './cli/exit.js';
import { endOnSignals } from './cli/first-process.js';
import { watchOutput } from './cli/output.js';
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
// What is still open then (a statement or a connection that says nothing) must not keep a command that is over.
process.exit(lost === null ? exitCode : exitCode || EXIT.failed);
