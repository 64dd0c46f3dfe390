import { setMaxListeners } from 'node:events';
import type { Command } from 'commander';
import { createProcessBudget } from '../../daemon/memory.js';
import type { FeedService } from '../../sync/ports/index.js';
import { createResultLoader } from '../../sync/results/resolve-truncated.js';
import { type CommandProcess, confirm, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { type FeedCommandContext, openFeedStore, withFeed } from '../context/with-feed.js';
import { withServiceOf } from '../context/with-service.js';
import { type Resolved, resolveRun } from '../results/resolve-run.js';
import { counted, printable } from '../terminal/format.js';
import { type Figures, type Progress, withProgress } from '../terminal/progress.js';

interface Given extends CommonOptions {
  readonly giveUp?: true;
}

type Work = FeedCommandContext<'service'>;

/** Number of runs per batch. Within a batch, the configured number of results is loaded at once. */
const BATCH_SIZE = 50;

const examples = `
Results that cannot be loaded now stay pending, and the running daemon retries
them.

Results that can no longer be loaded, for example because the service of their
feed is gone, can be given up: their runs stay as they are, and are neither
retried nor counted until they are resolved by id or delivered with results.
\`scanfeed forget --to\` hands pending results of a retired feed to another feed.

Examples:
  $ scanfeed resolve --all
  $ scanfeed resolve 4711-a 4711-b
  Reasons of pending results:
    $ scanfeed resolve --all --json |
        jq -r '.[] | select(.outcome == "pending") | [.scanId, .reason] | @tsv'
  A feed whose service is gone:
    $ scanfeed resolve --all --give-up --feed former`;

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('resolve')
    .description("Load pending results now instead of at the daemon's next retry.")
    .argument('[scanIds...]', 'ids of the runs')
    .option('--all', 'all pending results of the feed')
    .option('--give-up', 'stop retrying: the runs stay without their results');
  withOptions(command, 'yes', 'feed', 'quiet', 'json')
    .addHelpText('after', examples)
    .action((scanIds: readonly string[], options: Given) => resolve(scanIds, options, io));
}

async function resolve(scanIds: readonly string[], options: Given, io: CommandProcess): Promise<void> {
  const { all, feed } = options;
  if ((all === true) === scanIds.length > 0) throw new CommandFailure('give scan ids or --all', EXIT.usage);
  if (options.giveUp) return withFeed(io, { feed }, (work) => giveUp(scanIds, options, work, io));
  await withFeed(io, { feed, need: ['service'] }, async (work) => {
    const { scanIds: chosen, revisions } = await choosePending(scanIds, work);
    const connections = work.settings.feed.resolveConcurrency;
    const results = await withProgress(io, options, triedOf(0, chosen), (progress) =>
      withServiceOf(work, connections, io.clock, (service) =>
        resolveAll(chosen, revisions, work, service, io, progress),
      ),
    );
    print(results, options, io);
    requireNonePending(results);
  });
}

/**
 * Returns the named runs, or all pending ones of the feed except those that were given up, with their stored revisions.
 * @throws CommandFailure if one is not stored or belongs to another feed
 */
async function choosePending(named: readonly string[], { pending, feed }: FeedCommandContext) {
  const scanIds = named.length > 0 ? [...new Set(named)] : await pending.list(feed.name);
  const found = await pending.findScans(scanIds);
  const elsewhere = found.find((scan) => scan.feed !== feed.name);
  if (elsewhere !== undefined) {
    throw new CommandFailure(
      `the run ${printable(elsewhere.scanId)} belongs to the feed ${elsewhere.feed}: add --feed ${elsewhere.feed}`,
    );
  }
  const revisions: ReadonlyMap<string, number> = new Map(found.map(({ scanId, revision }) => [scanId, revision]));
  const missing = scanIds.filter((scanId) => !revisions.has(scanId));
  if (missing.length > 0)
    throw new CommandFailure(`there is no run ${missing.map(printable).join(', ')} in the database`);
  return { scanIds, revisions };
}

async function resolveAll(
  scanIds: readonly string[],
  revisions: ReadonlyMap<string, number>,
  work: Work,
  service: FeedService,
  { clock }: CommandProcess,
  progress: Progress,
): Promise<readonly Resolved[]> {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal); // one listener for each result in progress
  const { markdown, resolveConcurrency: concurrency, memoryBudgetBytes } = work.settings.feed;
  const store = openFeedStore(work, clock);
  const budget = createProcessBudget(memoryBudgetBytes);
  const keptDays = work.settings.database.retention.runs;
  const loader = createResultLoader({ service, store, clock, budget, markdown, concurrency, keptDays });
  const results: Resolved[] = [];
  let tries = 0;
  for (let from = 0; from < scanIds.length; from += BATCH_SIZE) {
    const some = scanIds.slice(from, from + BATCH_SIZE);
    const due = await work.pending.makeDue(work.feed.name, some);
    const tried = await Promise.all(
      due.map(async (run) => {
        const result = await resolveRun(run, work, { loader, store }, stop);
        tries += 1;
        progress.show(triedOf(tries, scanIds));
        return result;
      }),
    );
    const byScan = new Map(tried.map((result) => [result.scanId, result]));
    const complete = { outcome: 'complete', reason: null, detail: null } as const;
    for (const scanId of some)
      results.push(byScan.get(scanId) ?? { scanId, revision: revisions.get(scanId) ?? 0, ...complete });
  }
  return results;
}

function triedOf(tries: number, scanIds: readonly string[]): Figures {
  return { done: tries, total: scanIds.length, what: 'results tried' };
}

const OUTCOMES = {
  resolved: 'resolved',
  pending: 'still pending',
  complete: 'was already complete',
  given_up: 'given up',
  replaced: 'was replaced in the meantime',
} as const;

interface Result extends Pick<Resolved, 'scanId' | 'revision'>, Partial<Pick<Resolved, 'reason' | 'detail'>> {
  readonly outcome: keyof typeof OUTCOMES;
}

function print(results: readonly Result[], { json }: Given, { write }: CommandProcess): void {
  if (json) write(`${JSON.stringify(results)}\n`);
  else if (results.length === 0) write('No results are pending.\n');
  else write(results.map(describe).join(''));
}

function requireNonePending(results: readonly Resolved[]): void {
  const pending = results.filter(({ outcome }) => outcome === 'pending').length;
  if (pending > 0)
    throw new CommandFailure(`${pending} of ${counted(results.length, 'result', 'results')} still pending`);
}

function describe({ scanId, revision, outcome, reason, detail }: Result): string {
  const why = reason ? ` (${reason}${detail ? `: ${printable(detail)}` : ''})` : '';
  return `${printable(scanId)}, revision ${revision}: ${OUTCOMES[outcome]}${why}\n`;
}

/** Gives up results. Sends no request, because the service may be gone. */
async function giveUp(
  named: readonly string[],
  options: Given,
  work: FeedCommandContext,
  io: CommandProcess,
): Promise<void> {
  const { pending, feed } = work;
  const { scanIds, revisions } = await choosePending(named, work);
  if (scanIds.length > 0) {
    const plan = `${counted(scanIds.length, 'result', 'results')} of the feed ${feed.name} will be given up: their runs stay without
results, and no replica retries them. \`resolve SCANID\` can still load them.
`;
    await confirm(io, options, plan, 'Give them up?');
  }
  const givenUp = new Set(await pending.giveUp(feed.name, revisions));
  const left = scanIds.filter((scanId) => !givenUp.has(scanId));
  const present = new Map((await pending.findScans(left)).map((run) => [run.scanId, run.revision]));
  const results = scanIds.map((scanId) => {
    const revision = revisions.get(scanId) ?? 0;
    const kept = present.get(scanId) === revision ? 'complete' : 'replaced';
    return { scanId, revision, outcome: givenUp.has(scanId) ? 'given_up' : kept } as const;
  });
  print(results, options, io);
}
