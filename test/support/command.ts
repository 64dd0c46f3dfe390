import { Command } from 'commander';
import type { CommandProcess } from '../../src/cli/context/command-process.js';
import { explain } from '../../src/cli/context/exit.js';
import { escapeControls } from '../../src/cli/terminal/format.js';
import { systemClock } from '../../src/core/clock.js';
import { captureLeaks } from './canaries/capture-leaks.js';

/** A command's module. */
export interface CommandModule {
  register(program: Command, process?: CommandProcess): void;
}

export interface CommandRun {
  readonly exitCode: number;
  readonly out: string;
  /** Everything on stderr, the line of a failure included. */
  readonly err: string;
}

export interface CommandSetting {
  readonly env: Readonly<Record<string, string>>;
  /** What the person at the terminal answers, and does meanwhile; without it nobody can be asked. */
  readonly answer?: string | (() => Promise<string>);
  /** Columns of the terminal. */
  readonly columns?: number;
  /** The program that reads the output: called with all of it so far, returns false if it has ended. */
  readonly reader?: (out: string) => boolean;
  /** Default `hastyClock`. */
  readonly clock?: CommandProcess['clock'];
}

/** A clock that waits for nothing but other work, so that pauses between tries cost no time. */
export const hastyClock = { ...systemClock, sleep: () => new Promise<void>((resolve) => setImmediate(resolve)) };

/** Runs a command as the program does, with an environment, a terminal and a clock of the test's own. */
export async function runCommand(
  module: CommandModule,
  args: readonly string[],
  setting: CommandSetting,
): Promise<CommandRun> {
  const run = await execute(module, args, setting);
  // What was asked for by this name is content.
  if (!args.includes('--payload') && args[0] !== 'get')
    captureLeaks(`stdout of ${args[0]}`, run.out, secretsOf(setting));
  captureLeaks(`stderr of ${args[0]}`, run.err, secretsOf(setting));
  return run;
}

function secretsOf({ env }: CommandSetting): Record<string, string> {
  const { SCANFEED_API_KEY: apiKey, DATABASE_URL: url } = env;
  const password = url === undefined ? '' : decodeURIComponent(new URL(url).password);
  return { ...(apiKey ? { apiKey } : {}), ...(password ? { password } : {}) };
}

async function execute(
  { register }: CommandModule,
  args: readonly string[],
  { env, answer, columns, reader, clock = hastyClock }: CommandSetting,
): Promise<CommandRun> {
  let [out, err] = ['', ''];
  const print = (text: string) => {
    out += text;
  };
  const say = (text: string) => {
    err += text;
  };
  const program = new Command('scanfeed').exitOverride().configureOutput({
    writeOut: print,
    writeErr: say,
  });
  register(program, {
    env: { ...env },
    clock,
    write: (data) => {
      if (columns !== undefined) print(escapeControls(data));
      else print(typeof data === 'string' ? data : Buffer.from(data).toString('latin1'));
    },
    writeControls: print,
    written: async () => reader?.(out) ?? true,
    note: say,
    columns: columns ?? null,
    noteColumns: null,
    ask:
      answer === undefined
        ? null
        : async (question) => {
            const given = typeof answer === 'string' ? answer : await answer();
            say(`${question}${given}\n`);
            return given;
          },
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return { exitCode: 0, out, err };
  } catch (error) {
    const { message, exitCode } = explain(error);
    if (message !== null) say(`scanfeed: ${message}\n`);
    return { exitCode, out, err };
  }
}
