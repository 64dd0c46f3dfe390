import type { Command } from 'commander';
import { readSweepUnderWay, requestSweep } from '../storage/request-sweep.js';
import { type CommandProcess, thisProcess } from './command-process.js';
import { CommandFailure, EXIT } from './exit.js';
import { durationOption } from './time-options.js';
import { feedOption, withFeed } from './with-feed.js';

interface Given {
  readonly window?: number;
  readonly full?: true;
  readonly feed?: string;
  readonly json?: true;
}

const examples = `
The running daemon does the work: it re-reads that part of the feed and stores
what its cursor has passed by. When it is done, "reconciledAsOf" of "scanfeed
status --json" has moved on; what it found is in scanfeed_reconcile_found_total.

Examples:
  Over the window of SCANFEED_RECONCILE_WINDOW:
    $ scanfeed reconcile
  $ scanfeed reconcile --window 7d
  Over everything, paced (about 200 runs a second):
    $ scanfeed reconcile --full`;

/** `scanfeed reconcile`: makes a sweep due now. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('reconcile')
    .description('Let the daemon look now for runs and corrections that its cursor has passed by.')
    .option('--window <duration>', 'how far back it reads, such as 24h', durationOption)
    .option('--full', 'everything, from the start of the feed')
    .addOption(feedOption())
    .option('--json', 'print it as JSON')
    .addHelpText('after', examples)
    .action((options: Given) => reconcile(options, io));
}

async function reconcile({ window, full, feed: named, json }: Given, io: CommandProcess): Promise<void> {
  if (full && window !== undefined) throw new CommandFailure('give --window or --full, not both', EXIT.usage);
  await withFeed(io, { feed: named, need: ['reconcile'] }, async ({ settings, database, tables, feed }) => {
    const { intervalMs, windowMs, fullIntervalMs } = settings.reconcile;
    requireSwitchedOn(
      full ? 'SCANFEED_RECONCILE_FULL_INTERVAL' : 'SCANFEED_RECONCILE_INTERVAL',
      full ? fullIntervalMs : intervalMs,
    );
    const kind = full ? 'full' : 'window';
    // A full sweep is long: one that is half done is not thrown away.
    const running = full ? await readSweepUnderWay(database.sql, tables, feed.name, kind) : null;
    const sweep = running ?? (await requestSweep(database.sql, tables, feed.name, full ? null : (window ?? windowMs)));
    if (sweep === null) {
      throw new CommandFailure(
        `the history of the feed ${feed.name} is still being read; there is nothing to look for behind the cursor yet`,
      );
    }
    const { since, until } = sweep;
    const stretch = `from ${since?.toISOString() ?? 'the beginning of the history'} to ${until.toISOString()}`;
    const who =
      feed.leader === null ? 'No daemon runs: the next one begins with it.' : `${feed.leader} begins within a minute.`;
    const said =
      running === null
        ? `A ${kind === 'full' ? 'full sweep' : 'sweep'} ${stretch} is due now. ${who}`
        : `A full sweep ${stretch} is under way since ${running.begunAt.toISOString()}; it goes on.`;
    io.write(
      json
        ? `${JSON.stringify({ feed: feed.name, kind, since, until, alreadyUnderWay: running !== null, leader: feed.leader })}\n`
        : `${said}\n`,
    );
  });
}

function requireSwitchedOn(variable: string, interval: number | null): void {
  if (interval !== null) return;
  throw new CommandFailure(`${variable} is off: a daemon with these settings does not sweep; set it to an interval`);
}
