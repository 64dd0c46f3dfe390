import type { Command } from 'commander';
import { runsOnlyIn } from '../../core/feed-filters.js';
import type { SettingsFor } from '../../settings/settings.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { forChosenFeeds } from '../context/for-each-feed.js';
import { requireRange, timeOption } from '../context/parse-options.js';
import { type FeedCommandContext, withFeedOf } from '../context/with-feed.js';
import { withServiceOf } from '../context/with-service.js';
import { counted, formatTime, printable } from '../terminal/format.js';
import { withProgress } from '../terminal/progress.js';
import { type VerifiedPage, verifyFeed } from '../verify/verify-feed.js';
import { VERDICTS, type Verdict, type Verified } from '../verify/verify-page.js';

interface Given extends CommonOptions {
  readonly since: Date;
  readonly until?: Date;
}

interface Summary extends Record<Verdict, number> {
  since: Date;
  deliveredUpTo: Date;
  compared: number;
  truncated: number;
  tooNew: number;
  /** Stored runs of a range in which the feed lists nothing at all. */
  notListed: number;
}

const DIFFERENCES: readonly Verdict[] = ['missing', 'older_revision', 'other_content', 'quarantined'];

const examples = `
Writes nothing. Entries delivered after data_complete_as_of are not differences.
The data of truncated entries is not compared. The exit code is 1 if there are
differences, and 75 if nothing could be compared.

Examples:
  $ scanfeed verify --since 24h
  $ scanfeed verify --since 2026-01-01 --until 2026-02-01
  Every feed of the feeds file:
    $ scanfeed verify --since 24h --all
  Missing runs:
    $ scanfeed verify --since 7d --json |
        jq -r '.differences[] | select(.what == "missing") | .scanId'`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const time = timeOption(io.clock.now);
  const command = program
    .command('verify')
    .description('Read the feed again from a given time and compare every entry with the database.')
    .requiredOption('--since <time>', 'delivery time: ISO 8601, a day, or a time before now such as 24h', time)
    .option('--until <time>', 'delivery time to stop at (default: the end of the feed)', time);
  withOptions(command, 'feed', 'allFeeds', 'quiet', 'json')
    .addHelpText('after', examples)
    .action((options: Given) =>
      forChosenFeeds(io, options, ['database', 'service'], (settings, part) => verify(settings, options, part)),
    );
}

async function verify(
  settings: SettingsFor<'feed' | 'database' | 'service'>,
  given: Given,
  io: CommandProcess,
): Promise<void> {
  const { until = null, json } = given;
  requireRange(given.since, until, io.clock);
  await withFeedOf(settings, async (work: FeedCommandContext<'service'>) => {
    const since = startOf(work, given.since, io);
    if (until !== null && until <= since) throw new CommandFailure('--until is not after --since', EXIT.usage);
    noteOtherFilters(work, io);
    const printer = printerOf(json, io);
    const summary = emptySummary(since);
    try {
      const isRead = await compareAll({ work, since, until, printer, summary, options: given }, io);
      if (!isRead) throw new CommandFailure('differences were found; the output was closed before the end');
      if (summary.compared + summary.tooNew === 0) {
        summary.notListed = await work.countRuns(work.feed.name, { since, until }, settings.feed.filters);
      }
    } catch (error) {
      printer.fail();
      throw error;
    }
    printer.end(summary);
    const found = DIFFERENCES.reduce((sum, verdict) => sum + summary[verdict], 0);
    if (found > 0)
      throw new CommandFailure(`${found} of ${counted(summary.compared, 'entry', 'entries')} differ from the feed`);
    if (summary.notListed > 0) throw nothingListed(summary);
    if (summary.compared === 0) throw nothingCompared(summary);
  });
}

interface Comparison {
  readonly work: FeedCommandContext<'service'>;
  readonly since: Date;
  readonly until: Date | null;
  readonly printer: Printer;
  readonly summary: Summary;
  readonly options: CommonOptions;
}

/** Compares all pages. Returns false if it ended because nobody reads the differences any more. */
async function compareAll(
  { work, since, until, printer, summary, options }: Comparison,
  io: CommandProcess,
): Promise<boolean> {
  const end = until ?? work.feed.dataCompleteAsOf ?? since;
  return withProgress(io, options, 'reading the first page', (progress) =>
    withServiceOf(work, 1, io.clock, async (service) => {
      for await (const page of verifyFeed(work, service, { since, until, onPause: progress.say }, io.clock)) {
        const differences = page.compared.filter(({ verdict }) => DIFFERENCES.includes(verdict));
        if (differences.length > 0) progress.clear();
        for (const difference of differences) printer.difference(difference);
        if (differences.length > 0 && !(await io.written())) return false;
        addPage(summary, page);
        const delivered = { from: since, upTo: page.deliveredUpTo, until: end };
        progress.show({ done: summary.compared, what: 'entries compared', delivered });
      }
      return true;
    }),
  );
}

function addPage(summary: Summary, { compared, tooNew, deliveredUpTo }: VerifiedPage): void {
  for (const { verdict, truncated } of compared) {
    summary[verdict] += 1;
    if (truncated) summary.truncated += 1;
  }
  summary.compared += compared.length;
  summary.tooNew += tooNew;
  summary.deliveredUpTo = deliveredUpTo;
}

function nothingListed({ since, notListed }: Summary): CommandFailure {
  return new CommandFailure(
    `the feed lists no entry delivered since ${formatTime(since)}, but the database has ${counted(notListed, 'run', 'runs')} from that time on: the service may have removed them or lost its feed, or the key belongs to another organization. Ask the operators of the service`,
  );
}

function nothingCompared({ since, tooNew }: Summary): CommandFailure {
  const reason =
    tooNew > 0
      ? `${counted(tooNew, 'entry was', 'entries were')} delivered after the time up to which the data is complete. Try again once the lag is lower, or give an earlier --since`
      : `the feed lists no entry delivered since ${formatTime(since)}. Give an earlier --since`;
  return new CommandFailure(`nothing was compared: ${reason}`, EXIT.tryAgain);
}

/** Returns the start of the comparison: entries before the time from which the feed is complete are not expected. */
function startOf({ feed }: FeedCommandContext, since: Date, { note }: CommandProcess): Date {
  if (feed.dataCompleteAsOf === null) {
    throw new CommandFailure(`the completeness of the feed ${feed.name} is not known yet; wait for its first runs`);
  }
  if (feed.completeFrom === null || feed.completeFrom <= since) return since;
  note(`The feed ${feed.name} is complete from ${feed.completeFrom.toISOString()}; the comparison starts there.\n`);
  return feed.completeFrom;
}

function noteOtherFilters({ feed, settings }: FeedCommandContext, { note }: CommandProcess): void {
  const { filters } = settings.feed;
  if (runsOnlyIn(feed.filters, filters).length + runsOnlyIn(filters, feed.filters).length === 0) return;
  note('The filters in these settings differ from those of the daemon, which may cause differences.\n');
}

function emptySummary(since: Date): Summary {
  const counts = Object.fromEntries(VERDICTS.map((verdict) => [verdict, 0])) as Record<Verdict, number>;
  return { since, deliveredUpTo: since, compared: 0, ...counts, truncated: 0, tooNew: 0, notListed: 0 };
}

interface Printer {
  difference(entry: Verified): void;
  end(summary: Summary): void;
  /** Ends the output without a summary, if it has begun. */
  fail(): void;
}

/** Prints differences as they are found, because there may be millions. */
function printerOf(json: true | undefined, { write }: CommandProcess): Printer {
  if (!json) {
    return {
      difference: (entry) => write(describe(entry)),
      end: (summary) => write(describeSummary(summary)),
      fail: () => {},
    };
  }
  const begin = '{"differences":[';
  let separator = begin;
  return {
    difference: ({ scanId, revision, verdict, storedRevision, differing, deliveredAt }) => {
      const difference = { scanId, revision, what: verdict, storedRevision, differing, deliveredAt };
      write(`${separator}${JSON.stringify(difference)}`);
      separator = ',\n';
    },
    end: (summary) => write(`${separator === begin ? begin : ''}],"summary":${JSON.stringify(summary)}}\n`),
    fail: () => {
      if (separator !== begin) write('],"summary":null}\n');
    },
  };
}

function describe(entry: Verified): string {
  return `${printable(entry.scanId ?? '(no usable scan id)')}, revision ${entry.revision ?? '-'}: ${describeVerdict(entry)}\n`;
}

function describeVerdict({ verdict, storedRevision, differing }: Verified): string {
  if (verdict === 'older_revision') return `the database has revision ${storedRevision}`;
  if (verdict === 'other_content') return `other content: ${differing.join(', ')}`;
  return verdict === 'quarantined' ? 'in quarantine' : verdict;
}

function describeSummary(summary: Summary): string {
  const { since, deliveredUpTo, compared, tooNew, notListed } = summary;
  const counts: readonly (readonly [number, string])[] = [
    [summary.same, 'as in the feed, or newer'],
    [summary.pending, 'pending'],
    [summary.discarded, 'discarded from quarantine'],
    [summary.deleted, 'erased, or past the retention'],
    [summary.missing, 'missing'],
    [summary.older_revision, 'in an older revision'],
    [summary.other_content, 'with other content'],
    [summary.quarantined, 'in quarantine'],
    [summary.truncated, 'truncated in the feed: data not compared'],
    [tooNew, 'not compared: delivered after the time up to which the data is complete'],
    [notListed, 'in the database, not listed by the feed'],
  ];
  const width = String(Math.max(compared, tooNew, notListed)).length + 2;
  const lines = counts
    .filter(([number]) => number > 0)
    .map(([number, what]) => `${String(number).padStart(width)} ${what}`);
  const head = `${counted(compared, 'entry', 'entries')} compared, delivered from ${formatTime(since)} to ${formatTime(deliveredUpTo)}`;
  return [head, ...lines].map((line) => `${line}\n`).join('');
}
