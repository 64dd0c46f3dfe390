import type { Command } from 'commander';
import type { EarlierPosition, FeedRow, RewindTarget } from '../../storage/operator/feeds.js';
import { type CommandProcess, confirm, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { idOption, timeOption } from '../context/parse-options.js';
import { type FeedCommandContext, withFeed } from '../context/with-feed.js';
import { type Column, table } from '../terminal/table.js';

interface Given extends CommonOptions {
  readonly list?: true;
  readonly toCursor?: string;
  readonly since?: Date;
  readonly beginning?: true;
}

const examples = `
A running daemon continues from that position at once. Stored data is neither
lost nor reverted, and "complete as of" does not change.

Examples:
  Earlier positions:
    $ scanfeed rewind --list
    $ scanfeed rewind --to-cursor 41
  Read the last two days again:
    $ scanfeed rewind --since 2d
  Read everything again without confirmation:
    $ scanfeed rewind --beginning --yes`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('rewind')
    .description('Move the feed back to an earlier position and read it again from there.')
    .option('--list', 'list earlier positions, newest first')
    .option('--to-cursor <id>', 'go to an earlier position, by its id as listed', idOption)
    .option(
      '--since <time>',
      'go to a delivery time: ISO 8601, a day, or a time before now such as 24h',
      timeOption(io.clock.now),
    )
    .option('--beginning', 'go to the start of the feed');
  withOptions(command, 'yes', 'dryRun', 'feed', 'json')
    .addHelpText('after', examples)
    .action((options: Given) => run(options, io));
}

async function run(options: Given, io: CommandProcess): Promise<void> {
  const { list, toCursor, since, beginning } = options;
  const given = [list, toCursor, since, beginning].filter((option) => option !== undefined);
  if (given.length !== 1) throw new CommandFailure('give one of --list, --to-cursor, --since, --beginning', EXIT.usage);
  await withFeed(io, options, (work) => (list ? showPositions(work, options, io) : rewind(work, options, io)));
}

async function showPositions({ feeds, feed }: FeedCommandContext, { json }: Given, io: CommandProcess) {
  const positions = await feeds.listPositions(feed.name);
  if (json) return io.write(`${JSON.stringify(positions)}\n`);
  if (positions.length === 0) return io.write(`The feed ${feed.name} has no earlier positions yet.\n`);
  io.write(table(positions, LIST));
}

const LIST: readonly Column<EarlierPosition>[] = [
  { head: 'ID', cell: ({ id }) => id, right: true },
  { head: 'NOTED', cell: ({ notedAt }) => notedAt.toISOString() },
  { head: 'REASON', cell: ({ reason }) => reason },
  {
    head: 'DELIVERED UP TO',
    cell: ({ hasCursor, lastDeliveredAt }) =>
      hasCursor ? (lastDeliveredAt?.toISOString() ?? 'nothing yet') : 'no cursor',
  },
];

async function rewind(work: FeedCommandContext, options: Given, io: CommandProcess): Promise<void> {
  const { feeds, feed } = work;
  const { to, said } = await targetOf(work, options);
  const from = `read up to ${feed.lastDeliveredAt?.toISOString() ?? 'nothing yet'}`;
  const plan = `Feed ${feed.name} of ${feed.baseUrl}
  from: ${from}
  to:   ${said}
Entries delivered since then are read again before new ones. Stored data is not
reverted.${feed.leader === null ? '' : ` ${feed.leader} continues from there immediately.`}
`;
  if (options.dryRun) return io.write(options.json ? `${JSON.stringify({ feed: feed.name, to: said })}\n` : plan);
  await confirm(io, options, plan, 'Rewind the feed?');
  if (!(await feeds.rewind(feed.name, to))) {
    throw new CommandFailure('this position is no longer in the history; choose another with --list');
  }
  const { name, leader } = feed;
  io.write(
    options.json
      ? `${JSON.stringify({ feed: name, to: said, leader })}\n`
      : `The feed ${name} continues from ${said}${leader === null ? ' when a daemon is started' : ''}.\n`,
  );
}

async function targetOf(
  { feeds, feed }: FeedCommandContext,
  { toCursor, since }: Given,
): Promise<{ readonly to: RewindTarget; readonly said: string }> {
  if (toCursor !== undefined) {
    const position = (await feeds.listPositions(feed.name)).find(({ id }) => id === toCursor);
    if (position === undefined) {
      throw new CommandFailure(
        `the feed ${feed.name} has no earlier position ${toCursor}; see \`scanfeed rewind --list\``,
      );
    }
    if (!position.hasCursor) {
      throw new CommandFailure(`the feed had no cursor at position ${toCursor}: use --beginning or --since`);
    }
    const upTo = position.lastDeliveredAt?.toISOString() ?? 'nothing yet';
    return { to: { positionId: position.id, since: null }, said: `position ${position.id} (read up to ${upTo})` };
  }
  if (since !== undefined) return { to: { positionId: null, since: notAhead(since, feed) }, said: since.toISOString() };
  return {
    to: { positionId: null, since: null },
    said: feed.startSince === null ? 'the beginning of the history' : `its start, ${feed.startSince.toISOString()}`,
  };
}

/** Rejects times after the position: entries in between would be skipped, but count as complete. */
function notAhead(since: Date, { lastDeliveredAt, startSince, name }: FeedRow): Date {
  const readTo = lastDeliveredAt ?? startSince;
  if (readTo !== null && since <= readTo) return since;
  const read = readTo === null ? 'nothing has been delivered yet' : `it was read up to ${readTo.toISOString()}`;
  throw new CommandFailure(`the feed ${name} cannot skip ahead to ${since.toISOString()}: ${read}`);
}
