import type { Command } from 'commander';
import type { FeedRow } from '../../storage/operator/feeds.js';
import { type Belongings, countBelongings, forgetFeed } from '../../storage/operator/forget-feed.js';
import { type CommandProcess, confirm, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { readSchemaSettings } from '../context/feed-settings.js';
import { requireFeed, withDatabase } from '../context/with-feed.js';
import { counted } from '../terminal/format.js';
import { withProgress } from '../terminal/progress.js';

interface Given extends CommonOptions {
  readonly to?: string;
}

/** Deadline of a statement, milliseconds: some read all runs. */
const DEADLINE_MS = 3_600_000;

const examples = `
Take the feed out of the settings first: a feed that a process leads cannot be
forgotten. If it is started again under its name, it begins at SCANFEED_START.

Examples:
  Hand its runs, pending results and quarantine over to another feed:
    $ scanfeed forget former --to invoices
  Show what would happen:
    $ scanfeed forget former --to invoices --dry-run
  Start the feed again after the service has moved to another address:
    $ scanfeed forget invoices`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('forget')
    .description('Delete a retired feed: its position, passes and lease. Its runs stay.')
    .argument('<feed>', 'the feed, as it is named in the database')
    .option('--to <feed>', 'hand the runs, pending results and quarantine over to this feed');
  withOptions(command, 'dryRun', 'yes', 'settings', 'quiet', 'json')
    .addHelpText('after', examples)
    .action((feed: string, options: Given) => forget(feed, options, io));
}

async function forget(name: string, options: Given, io: CommandProcess): Promise<void> {
  const { to = null, dryRun = false } = options;
  if (to === name) throw new CommandFailure('--to must name another feed', EXIT.usage);
  const settings = await readSchemaSettings(io, options.feed);
  await withDatabase(
    settings,
    async (store) => {
      const left = await countBelongings(store.connection, name);
      // The runs of a feed that is already forgotten can still be handed over.
      const isEmpty = left.runs + left.openEntries === 0;
      const feed = isEmpty || to === null ? await requireFeed(store, name) : await store.feeds.find(name);
      if (to !== null) await requireFeed(store, to);
      if (feed?.leader) {
        const remedy = 'take it out of the settings of that process first, or stop the process';
        throw new CommandFailure(`the feed ${name} is led by ${feed.leader}: ${remedy}`, EXIT.tryAgain);
      }
      const fate = fateOf(left, to);
      const plan = planOf(name, feed, fate);
      const report = (said: string) =>
        io.write(options.json ? `${JSON.stringify({ feed: name, to, dryRun, ...left })}\n` : said);
      if (dryRun) return report(plan);
      await confirm(io, options, plan, 'Forget the feed?');
      const figures = (done: number) => ({ done, total: left.runs, what: 'runs handed over' });
      const isForgotten = await withProgress(io, options, 'forgetting', ({ show }) =>
        forgetFeed(store.connection, name, to, (runs) => show(figures(runs))),
      );
      if (!isForgotten) {
        throw new CommandFailure('a feed was started or removed in the meantime; try again', EXIT.tryAgain);
      }
      report(`The feed ${name} is forgotten; ${fate}.\n`);
    },
    DEADLINE_MS,
  );
}

function planOf(name: string, feed: FeedRow | undefined, fate: string): string {
  if (feed === undefined) return `Feed ${name}, already forgotten\n  ${fate}\n`;
  return `Feed ${name} of ${feed.baseUrl}\n  read up to: ${feed.lastDeliveredAt?.toISOString() ?? 'nothing yet'}
  ${fate}
Its position, earlier positions and passes will be deleted. If it is started
again under this name, it begins at SCANFEED_START.
`;
}

/** Says what becomes of the rows of other tables. */
function fateOf({ runs, pendingResults, openEntries }: Belongings, to: string | null): string {
  const pending = counted(pendingResults, 'pending result', 'pending results');
  const open = counted(openEntries, 'open entry', 'open entries');
  const rows = `${counted(runs, 'run', 'runs')}, ${pending}, ${open} in quarantine`;
  if (to !== null) return `${rows}: handed to the feed ${to}`;
  const orphaned =
    pendingResults + openEntries > 0 ? '; no process works on them: --to OTHER hands them to the feed OTHER' : '';
  return `${rows}: kept${orphaned}`;
}
