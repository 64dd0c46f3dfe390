import type { Command } from 'commander';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { requireRange } from '../context/parse-options.js';
import { type FeedCommandContext, withFeed } from '../context/with-feed.js';
import { cancel, type PassOptions, passCommand, requestPass } from '../passes/pass-command.js';
import { formatTime } from '../terminal/format.js';

interface Given extends PassOptions {
  readonly beginning?: true;
}

const examples = `
The running daemon reads the range while it follows the feed; the cursor of the
feed does not move. If no daemon runs, the next one reads the range. If this
command is interrupted while it waits, the daemon continues, and the same
command joins the backfill.

Examples:
  $ scanfeed backfill --since 7d
  $ scanfeed backfill --since 2026-01-01 --until 2026-02-01 --wait
  $ scanfeed backfill --beginning
  $ scanfeed backfill --cancel`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  passCommand(program, 'backfill', io)
    .description('Read a range of the feed again and store the runs that are missing or newer.')
    .option('--beginning', 'start at the beginning of the history')
    .addHelpText('after', examples)
    .action((options: Given) => backfill(options, io));
}

async function backfill(given: Given, io: CommandProcess): Promise<void> {
  const { since = null, until = null, beginning, feed } = given;
  if ([since !== null, beginning === true, given.cancel === true].filter(Boolean).length !== 1) {
    throw new CommandFailure('give one of --since, --beginning and --cancel', EXIT.usage);
  }
  if (given.cancel) return cancel(['backfill'], given, io);
  requireRange(since, until, io.clock);
  await withFeed(io, { feed }, async (work) => {
    const request = () => work.passes.requestBackfill(work.feed.name, { since, until });
    await requestPass(request, given, work, io, () => completeFrom(work));
  });
}

async function completeFrom({ feeds, feed: { name } }: FeedCommandContext): Promise<string> {
  const from = (await feeds.find(name))?.completeFrom ?? null;
  return `The data of the feed ${name} is complete from ${from === null ? 'the beginning' : formatTime(from)}.\n`;
}
