import { type Command, Option } from 'commander';
import type { FeedRow } from '../../storage/operator/feeds.js';
import type { RequestedPass } from '../../storage/operator/request-pass.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { CommandFailure } from '../context/exit.js';
import { requireRange } from '../context/parse-options.js';
import { type FeedCommandContext, withFeed } from '../context/with-feed.js';
import { cancel, type PassOptions, passCommand, requestPass } from '../passes/pass-command.js';
import { formatTime } from '../terminal/format.js';

interface Given extends PassOptions {
  readonly full?: true;
}

const examples = `
The running daemon reads a part of the feed again and stores the runs that its
cursor has skipped. If no daemon runs, the next one reads it. The daemon counts
the runs that it finds in scanfeed_reconcile_found_total. A range with --until
does not change the time up to which the feed is reconciled.

Examples:
  The window of SCANFEED_RECONCILE_WINDOW:
    $ scanfeed reconcile
  $ scanfeed reconcile --since 7d --wait
  The whole feed, one page per second:
    $ scanfeed reconcile --full
  $ scanfeed reconcile --cancel`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  passCommand(program, 'reconcile', io)
    .description('Find the runs and corrections that the cursor has skipped, and store them.')
    .addOption(new Option('--full', 'read the whole feed from its start').conflicts(['since', 'until']))
    .addHelpText('after', examples)
    .action((options: Given) => reconcile(options, io));
}

async function reconcile(given: Given, io: CommandProcess): Promise<void> {
  const { since = null, until = null, full, feed: named } = given;
  if (given.cancel) return cancel(full ? ['full'] : ['recent', 'full'], given, io);
  requireRange(since, until, io.clock);
  await withFeed(io, { feed: named, need: ['reconcile'] }, async (work) => {
    const { settings, passes, feed } = work;
    requireReadRange(feed, since, until);
    const range = { since: since ?? settings.reconcile.windowMs, until };
    const request = async () => {
      const pass = await passes.requestReconciliation(feed.name, full ? 'full' : 'recent', range);
      if (pass !== undefined) return pass;
      const others = full ? ' or has not read the runs before its start yet' : '';
      throw new CommandFailure(
        `the feed ${feed.name} has not caught up yet${others}: \`scanfeed status\` shows its progress`,
      );
    };
    await requestPass(request, given, work, io, (pass) => reconciledUpTo(pass, work));
  });
}

/** @throws CommandFailure if the range ends before the feed begins, or begins after what the feed has read */
function requireReadRange(
  { name, startSince, dataCompleteAsOf, lastDeliveredAt }: FeedRow,
  since: Date | null,
  until: Date | null,
) {
  if (until !== null && startSince !== null && until <= startSince) {
    throw new CommandFailure(
      `--until must be later than ${formatTime(startSince)}, where the feed ${name} begins: \`scanfeed backfill\` reads earlier runs`,
    );
  }
  const readUpTo = Math.max(dataCompleteAsOf?.getTime() ?? 0, lastDeliveredAt?.getTime() ?? 0);
  if (since !== null && dataCompleteAsOf !== null && since.getTime() >= readUpTo) {
    throw new CommandFailure(
      `--since must be earlier than ${formatTime(new Date(readUpTo))}, up to which the feed ${name} is complete`,
    );
  }
}

/** Returns a line with the time up to which the feed is reconciled. Cancelled passes and passes with an end do not change it. */
async function reconciledUpTo(
  { cancelled }: RequestedPass,
  { feeds, feed: { name } }: FeedCommandContext,
): Promise<string> {
  const upTo = (await feeds.find(name))?.reconciledAsOf ?? null;
  return cancelled || upTo === null ? '' : `The feed ${name} is reconciled up to ${formatTime(upTo)}.\n`;
}
