import { feedsFilePath, readFeedsFile } from '../../settings/feeds-file.js';
import { SettingsError, type SettingsFor } from '../../settings/settings.js';
import type { Group } from '../../settings/variables.js';
import type { CommandProcess } from './command-process.js';
import type { CommonOptions } from './common-options.js';
import { CommandFailure, worstOf } from './exit.js';
import { readFeedSettings, requiresFile } from './feed-settings.js';
import { runEach } from './run-each.js';

/**
 * Runs a command for the chosen feed, or with `all` for all feeds of the feeds file, one after another. Prints a heading for each feed, or
 * with `json` an array with the result and the failure of each. A feed that fails does not stop the others.
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
  const output = outputOf(io, json === true);
  const listed = [
    ...feeds.map((settings) => ({ name: settings.feed.name, settings })),
    ...invalid.map(({ name, mistakes }) => ({ name, mistakes })),
  ];
  const codes = await runEach(
    listed,
    async (one) => {
      output.begin(one.name);
      if ('mistakes' in one) throw new SettingsError(one.mistakes);
      await run(one.settings, output.part);
      output.end(one.name, null);
    },
    ({ name }, message) => output.end(name, message),
  );
  output.close();
  if (codes.length === 0) return;
  throw new CommandFailure(`failed for ${codes.length} of ${listed.length} feeds`, worstOf(codes));
}

/** Returns the frame around the results of several feeds. Between `begin` and `end` the command writes one to `part`. */
function outputOf(io: CommandProcess, json: boolean) {
  let separator = json ? '[' : '';
  let isEmpty = true;
  const write = (data: string | Uint8Array) => {
    isEmpty = false;
    io.write(typeof data === 'string' ? data.replace(/\n$/, '') : data);
  };
  return {
    part: json ? { ...io, write } : io,
    begin: (name: string) => {
      io.write(separator + (json ? `{"feed":${JSON.stringify(name)},"result":` : `Feed ${name}\n`));
      separator = json ? ',\n' : '\n';
      isEmpty = true;
    },
    /** @param failure message; null if it succeeded */
    end: (name: string, failure: string | null) => {
      if (json) io.write(`${isEmpty ? 'null' : ''},"failure":${JSON.stringify(failure)}}`);
      else if (failure !== null) io.note(`scanfeed: feed ${name}: ${failure}\n`);
    },
    close: () => {
      if (json) io.write(separator === '[' ? '[]\n' : ']\n');
    },
  };
}
