#!/usr/bin/env node
import { Command } from 'commander';
import { EXIT, explain } from './cli/exit.js';
import { packageVersion } from './cli/version.js';

/** One file a command; only the one that is asked for is loaded, so that the daemon starts quickly. */
const COMMANDS: Readonly<Record<string, () => Promise<{ register(program: Command): void }>>> = {
  run: () => import('./cli/run.js'),
  migrate: () => import('./cli/migrate.js'),
  status: () => import('./cli/status.js'),
  verify: () => import('./cli/verify.js'),
  resolve: () => import('./cli/resolve.js'),
  quarantine: () => import('./cli/quarantine.js'),
  rewind: () => import('./cli/rewind.js'),
  adopt: () => import('./cli/adopt.js'),
  reconcile: () => import('./cli/reconcile.js'),
  emulator: () => import('./cli/emulator.js'),
  demo: () => import('./cli/demo.js'),
};

async function main(args: readonly string[]): Promise<number> {
  const program = new Command('scanfeed')
    .description('Keeps a PostgreSQL database in step with the delivery feed of a Document Recognition Service.')
    .version(packageVersion())
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(`scanfeed: ${usageError(text)}\n`) });
  const asked = COMMANDS[args.find((argument) => !argument.startsWith('-')) ?? ''];
  const modules = asked === undefined ? Object.values(COMMANDS) : [asked];
  for (const load of modules) (await load()).register(program);
  try {
    await program.parseAsync(args, { from: 'user' });
    return EXIT.done;
  } catch (error) {
    const { message, exitCode } = explain(error);
    if (message !== null) process.stderr.write(`scanfeed: ${message}\n`);
    return exitCode;
  }
}

/** Commander's message as one line, with where to look. */
function usageError(text: string): string {
  return `${text
    .replace(/^error: /, '')
    .trim()
    .replaceAll(/\s+/g, ' ')} (see --help)`;
}

/** What is still open then (a connection that says nothing) must not keep a command that is over. */
const LINGER_MS = 500;

process.exitCode = await main(process.argv.slice(2));
setTimeout(() => process.exit(), LINGER_MS).unref();
