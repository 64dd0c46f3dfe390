import { type Command, Option } from 'commander';
import type { PassRequest, RequestedPass } from '../../storage/operator/request-pass.js';
import type { PassKind } from '../../sync/ports/index.js';
import type { CommandProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure } from '../context/exit.js';
import { timeOption } from '../context/parse-options.js';
import { type FeedCommandContext, withFeed } from '../context/with-feed.js';
import { withRetries } from '../context/with-retries.js';
import { counted, formatSeconds, formatTime } from '../terminal/format.js';
import { type Figures, withProgress } from '../terminal/progress.js';

/** Options of every command that requests a pass. */
export interface PassOptions extends CommonOptions {
  readonly since?: Date;
  readonly until?: Date;
  readonly wait?: true;
  readonly cancel?: true;
}

/** Interval between checks of a pass, milliseconds. */
const CHECK_MS = 1_000;
/** Time without a committed page after which the progress mentions it, milliseconds. */
const SILENCE_MS = 30_000;

export function passCommand(program: Command, name: string, { clock }: CommandProcess): Command {
  const time = timeOption(clock.now);
  const command = program
    .command(name)
    .option('--since <time>', 'delivery time to begin at: ISO 8601, a day, or a time before now such as 24h', time)
    .option('--until <time>', 'delivery time to end at (default: now)', time)
    .option('--wait', 'wait until the pass has finished, and show its progress')
    .addOption(
      new Option('--cancel', 'cancel the unfinished pass; stored runs are kept').conflicts(['since', 'until', 'wait']),
    );
  return withOptions(command, 'quiet', 'feed', 'json');
}

/** Requests a pass, which the running daemon or the next one runs. Waits for its end with `--wait`. */
export async function requestPass(
  request: () => Promise<PassRequest>,
  options: PassOptions,
  work: FeedCommandContext,
  io: CommandProcess,
  summary: (pass: RequestedPass) => Promise<string>,
): Promise<void> {
  const { wait, json } = options;
  const { name, leader } = work.feed;
  const { joined, ...pass } = await request();
  const next = wait ? '' : `${leader} runs it; \`scanfeed status\` shows its progress.\n`;
  if (!json) io.write(announcement(pass, joined) + (leader === null ? NO_DAEMON : next));
  const last = wait ? await untilFinished({ ...pass, joined }, work, io, options) : pass;
  if (json) io.write(`${JSON.stringify({ feed: name, ...last, joined })}\n`);
  if (wait && !json) {
    const read = `${counted(last.entries, 'entry', 'entries')} read, ${counted(last.stored, 'run stored that was', 'runs stored that were')} missing, older or less complete.\n`;
    io.write(read + (await summary(last)));
  }
  if (last.cancelled) {
    throw new CommandFailure(
      `the ${namesOf([last.kind])} was cancelled${last.kind === 'backfill' ? '' : ' or replaced'} before it finished`,
    );
  }
}

const NO_DAEMON = 'No daemon is running; the next `scanfeed run` will run the pass.\n';

export function cancel(kinds: readonly PassKind[], options: PassOptions, io: CommandProcess): Promise<void> {
  const { feed: named, json } = options;
  return withFeed(io, { feed: named }, async ({ passes, feed }) => {
    const cancelled = await passes.cancel(feed.name, kinds);
    if (json) io.write(`${JSON.stringify(cancelled)}\n`);
    else if (cancelled.length === 0) io.write(`The feed ${feed.name} has no unfinished ${namesOf(kinds)}.\n`);
    else io.write(cancelled.map((pass) => `Cancelled the ${describePass(pass)}: ${readSoFar(pass)}.\n`).join(''));
  });
}

/** Shows the progress until the pass ends. A signal ends the command at once; the daemon continues the pass. */
async function untilFinished(
  { joined, ...requested }: PassRequest,
  work: FeedCommandContext,
  io: CommandProcess,
  options: CommonOptions,
): Promise<RequestedPass> {
  const { clock } = io;
  let from = requested.since ?? work.feed.startSince;
  let isLeaderless = false;
  return withProgress(io, options, 'waiting for the first page', async (progress) => {
    const check = async () => {
      const leader = await leaderFor(requested, work);
      const pass = await readAgain(requested, work);
      if (pass.finishedAt !== null) return pass;
      if (!joined) from ??= pass.deliveredUpTo;
      progress.show(progressOf(pass, from, leader), (leader === null) !== isLeaderless);
      isLeaderless = leader === null;
      return pass;
    };
    for (;;) {
      const pass = await withRetries(check, { clock, onPause: progress.say });
      if (pass.finishedAt !== null) return pass;
      await clock.sleep(CHECK_MS, new AbortController().signal);
    }
  });
}

/**
 * Returns the process that runs the pass, or null without a daemon.
 * @throws CommandFailure if no process will run it
 */
async function leaderFor(
  { kind, begunAt }: RequestedPass,
  { feeds, feed }: FeedCommandContext,
): Promise<string | null> {
  const { leader = null, filtersWidenedAt = null } = (await feeds.find(feed.name)) ?? {};
  if (kind === 'full' && filtersWidenedAt !== null && filtersWidenedAt > begunAt) {
    throw new CommandFailure(
      `the filters of the feed ${feed.name} include more than when this pass began: run \`scanfeed reconcile --full\` again`,
    );
  }
  return leader;
}

async function readAgain({ id, begunAt }: RequestedPass, { passes }: FeedCommandContext): Promise<RequestedPass> {
  const pass = await passes.find(id);
  if (pass?.begunAt.getTime() !== begunAt.getTime())
    throw new CommandFailure(
      'the pass has ended and was deleted by a later one, or a failover lost it; see `scanfeed status`',
    );
  return pass;
}

/** @param from delivery time at which the pass began; null if unknown */
function progressOf(pass: RequestedPass, from: Date | null, leader: string | null): string | Figures {
  const { entries, deliveredUpTo: upTo, until, idleMs } = pass;
  if (leader === null) return `waiting for a daemon: start \`scanfeed run\` (${readSoFar(pass)})`;
  if (idleMs === null) return `waiting for ${leader} to begin`;
  const remark = idleMs > SILENCE_MS ? `no page for ${formatSeconds(idleMs / 1000)}: see the log of ${leader}` : null;
  return {
    done: entries,
    what: entries === 1 ? 'entry read' : 'entries read',
    delivered: { from, upTo, until },
    remark,
  };
}

function readSoFar({ entries, deliveredUpTo }: RequestedPass): string {
  const read = `${counted(entries, 'entry', 'entries')} read`;
  return deliveredUpTo === null ? read : `${read}, delivered up to ${formatTime(deliveredUpTo)}`;
}

function announcement(pass: RequestedPass, joined: boolean): string {
  if (!joined) return `Requested a ${describePass(pass)}.\n`;
  return `Joined the ${describePass(pass)}, unfinished since ${formatTime(pass.begunAt)} (${readSoFar(pass)}).\n`;
}

function describePass({ kind, since, until }: RequestedPass): string {
  return `${namesOf([kind])} from ${since === null ? 'the beginning' : formatTime(since)} to ${formatTime(until)}`;
}

function namesOf(kinds: readonly PassKind[]): string {
  return kinds.includes('backfill') ? 'backfill' : `${kinds.join(' or ')} pass`;
}
