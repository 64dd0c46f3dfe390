import { feedsFilePath, readFeedsFile } from '../../settings/feeds-file.js';
import { SettingsError, type SettingsFor } from '../../settings/settings.js';
import type { Group } from '../../settings/variables.js';
import type { CommandProcess } from './command-process.js';
import type { CommonOptions } from './common-options.js';
import { CommandFailure, worstOf } from './exit.js';
import { readFeedSettings, requiresFile } from './feed-settings.js';
import { runEach } from './run-each.js';

/**
 * Runs a command for the chosen feed, or with `all` for one feed of the feeds file after another, each with a heading, or with `json`
 * as an array with the result and the failure of each. A feed that fails does not stop the others.
 * @throws CommandFailure with the worst exit code if it failed for a feed
 */
export async function forChosenFeeds<G extends Group>(
  io: CommandProcess,
  { feed, all, json }: CommonOptions,
  need: readonly G[],
  run: (settings: SettingsFor<G | 'feed'>, io: CommandProcess) => Promise<void>,
): Promise<void> {
  if (!all) return run(await readFeedSettings(io, { feed, need: ['feed', ...need], orAll: true }), io);
  const { env, clock } = io;
  const path = feedsFilePath(env);
  if (path === null) throw requiresFile('--all');
  const { feeds, invalid } = await readFeedsFile(path, env, { need, clock });
  const output = json ? jsonOutput(io) : textOutput(io);
  const listed = [
    ...feeds.map((settings) => ({ name: settings.feed.name, settings })),
    ...invalid.map(({ name, mistakes }) => ({ name, mistakes })),
  ];
  const codes = await runEach(
    listed,
    async (one) => {
      const part = output.begin(one.name);
      if ('mistakes' in one) throw new SettingsError(one.mistakes);
      await run(one.settings, part);
      output.end(one.name, null);
    },
    ({ name }, message) => output.end(name, message),
  );
  output.close();
  if (codes.length === 0) return;
  throw new CommandFailure(`failed for ${codes.length} of ${listed.length} feeds`, worstOf(codes));
}

interface Output {
  /** Begins the result of a feed. Returns the process that the command uses for it. */
  begin(name: string): CommandProcess;
  /** @param failure message; null if it succeeded */
  end(name: string, failure: string | null): void;
  close(): void;
}

function textOutput(io: CommandProcess): Output {
  let separator = '';
  return {
    begin: (name) => {
      io.write(`${separator}Feed ${name}\n`);
      separator = '\n';
      return io;
    },
    end: (name, failure) => {
      if (failure !== null) io.note(`scanfeed: feed ${name}: ${failure}\n`);
    },
    close: () => {},
  };
}

function jsonOutput(io: CommandProcess): Output {
  let separator = '[';
  let isEmpty = true;
  return {
    begin: (name) => {
      io.write(`${separator}{"feed":${JSON.stringify(name)},"result":`);
      separator = ',\n';
      isEmpty = true;
      const write = (data: string | Uint8Array) => {
        isEmpty = false;
        io.write(typeof data === 'string' ? data.replace(/\n$/, '') : data);
      };
      return { ...io, write };
    },
    end: (_, failure) => io.write(`${isEmpty ? 'null' : ''},"failure":${JSON.stringify(failure)}}`),
    close: () => io.write(separator === '[' ? '[]\n' : ']\n'),
  };
}
