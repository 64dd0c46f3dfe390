import type { Command } from 'commander';
import { feedsFilePath } from '../../settings/feeds-file.js';
import type { FeedService, PendingReason, RawRun } from '../../sync/ports/index.js';
import { judgeResult } from '../../sync/results/full-result.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { readFeedSettings } from '../context/feed-settings.js';
import { type FeedCommandContext, openFeedStore, withFeed } from '../context/with-feed.js';
import { withRetries } from '../context/with-retries.js';
import { withService, withServiceOf } from '../context/with-service.js';
import { storeRun } from '../results/resolve-run.js';
import { printable } from '../terminal/format.js';
import { describeRun, markdownOf } from '../terminal/show-run.js';

interface Given extends CommonOptions {
  readonly markdown?: true;
  readonly save?: true;
}

type Work = FeedCommandContext<'service'>;

const examples = `
Shows document content: formatted on a terminal, otherwise the JSON of the
service, byte for byte. Only --save needs the database.

Examples:
  $ scanfeed get 6083ce9e-b870-4e2b-8bbd-88dac083ce9e
  $ scanfeed get 6083ce9e-b870-4e2b-8bbd-88dac083ce9e | jq .data
  $ scanfeed get 6083ce9e-b870-4e2b-8bbd-88dac083ce9e --markdown >invoice.md
  Store it in the database, even while a daemon is running:
    $ scanfeed get 6083ce9e-b870-4e2b-8bbd-88dac083ce9e --save`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('get')
    .description('Show one run with its full result, as the service returns it now.')
    .argument('<scanId>', 'id of the run')
    .option('--markdown', 'show the recognized markdown as text')
    .option('--save', 'store it in the database, as the daemon would');
  withOptions(command, 'feed')
    .option('--json', 'print the JSON as the service sends it')
    .addHelpText('after', examples)
    .action((scanId: string, options: Given) => get(scanId, options, io));
}

async function get(scanId: string, given: Given, io: CommandProcess): Promise<void> {
  if (given.save) return withFeed(io, { feed: given.feed, need: ['service'] }, (work) => save(scanId, given, work, io));
  if (given.feed !== undefined && feedsFilePath(io.env) === null)
    throw new CommandFailure('--feed requires --save or SCANFEED_FEEDS_FILE', EXIT.usage);
  const { service: settings } = await readFeedSettings(io, { feed: given.feed, need: ['service'] });
  const run = await withService(settings, 1, io.clock, (service) => read(service, scanId, given.markdown === true, io));
  show(run, given, io);
}

function read(service: FeedService, scanId: string, markdown: boolean, io: CommandProcess): Promise<RawRun> {
  const { signal } = new AbortController(); // signals end the process directly: nothing needs a cleanup
  const request = () => service.readRun(scanId, { markdown }, signal);
  return withRetries(request, { clock: io.clock, onPause: (said) => io.note(`${said}\n`) });
}

function show(run: RawRun, { markdown, json }: Given, io: CommandProcess): void {
  if (markdown && !json) io.write(requireMarkdown(run));
  else if (!json && io.columns !== null) io.write(describeRun(run));
  else {
    io.write(run.body);
    io.write('\n');
  }
}

function requireMarkdown(answer: RawRun): string {
  const markdown = markdownOf(answer);
  if (markdown !== null) return `${markdown}\n`;
  const { scanId, status } = answer.run;
  const processing = status === 'processing';
  throw new CommandFailure(
    `the run ${printable(String(scanId))} has no markdown${processing ? ' yet: it is still processing' : ''}`,
    processing ? EXIT.tryAgain : EXIT.failed,
  );
}

async function save(scanId: string, given: Given, work: Work, io: CommandProcess): Promise<void> {
  const { settings } = work;
  const stored = await findOwn(scanId, work);
  const markdown = given.markdown === true || settings.feed.markdown;
  const run = await withServiceOf(work, 1, io.clock, (service) => read(service, scanId, markdown, io));
  show(run, given, io);
  const verdict = judgeResult({ scanId, revision: stored?.revision ?? 0 }, run, markdown);
  if (verdict.kind === 'pending') throw notSaved(verdict.reason);
  const { revision } = verdict.entry.accepted.run;
  const saved = await storeRun(verdict.entry, work, openFeedStore(work, io.clock));
  if (saved === null) throw new CommandFailure('not saved: PostgreSQL refuses one of its values');
  const { counts } = saved;
  if (counts.stale > 0)
    throw new CommandFailure('not saved: a newer revision is stored, or the run was erased or is past the retention');
  const done = counts.inserted + counts.updated > 0 ? 'saved' : 'was already stored';
  io.note(`revision ${revision} ${done}${counts.conflicts > 0 ? ' with different content, which was kept' : ''}\n`);
}

/** Returns the stored run. @throws CommandFailure if it belongs to another feed */
async function findOwn(scanId: string, { pending, feed }: Work) {
  const [stored] = await pending.findScans([scanId]);
  if (stored === undefined || stored.feed === feed.name) return stored;
  throw new CommandFailure(`the run belongs to the feed ${stored.feed}: add --feed ${stored.feed}`);
}

const REASONS: Readonly<Partial<Record<PendingReason, string>>> = {
  processing: 'it is still processing',
  still_truncated: 'the service returns it without its result',
  older_revision: 'a newer revision is stored',
  newer_revision: 'the response does not say whether its partner is in test mode; the feed will list this revision',
};

function notSaved(reason: PendingReason): CommandFailure {
  const why = REASONS[reason] ?? 'the service returned an unusable run';
  return new CommandFailure(`not saved: ${why}`, reason === 'processing' ? EXIT.tryAgain : EXIT.failed);
}
