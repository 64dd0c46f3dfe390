import { type Command, Option } from 'commander';

/** Options that have the same meaning in every command that has them. */
export interface CommonOptions {
  readonly feed?: string;
  readonly all?: true;
  readonly yes?: true;
  readonly dryRun?: true;
  readonly quiet?: true;
  readonly json?: true;
}

const OPTIONS = {
  feed: new Option('--feed <name>', 'the feed (default: SCANFEED_FEED, or the only one of the feeds file)'),
  /** For commands that need a feed only for its settings. */
  settings: new Option('--feed <name>', 'use the settings of this feed of the feeds file'),
  allFeeds: new Option('--all', 'all feeds of the feeds file, one after another').conflicts('feed'),
  yes: new Option('--yes', 'do not ask'),
  dryRun: new Option('--dry-run', 'show what would happen, and change nothing'),
  quiet: new Option('--quiet', 'show no progress'),
  json: new Option('--json', 'print it as JSON'),
};

/** Adds the named options to a command, in this order. */
export function withOptions(command: Command, ...names: readonly (keyof typeof OPTIONS)[]): Command {
  return names.reduce((each, name) => each.addOption(OPTIONS[name]), command);
}
