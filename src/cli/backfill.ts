import type { Command } from 'commander';
import { readFeed } from '../storage/feed.js';
import { type RequestedBackfill, readBackfill, requestBackfill, stopBackfills } from '../storage/request-backfill.js';
import { type BackfillWorker, withBackfillWorker } from './backfill-worker.js';
import { type CommandProcess, thisProcess } from './command-process.js';
import { CommandFailure, EXIT } from './exit.js';
import { counted, humanSeconds } from './human.js';
import { type ProgressLine, progressLine } from './progress-line.js';
import { untilStopped } from './stop-signals.js';
import { requireStretch, timeOption } from './time-options.js';
import { type FeedAtWork, feedOption, withFeed } from './with-feed.js';

interface Given {
  readonly since?: Date;
  readonly beginning?: true;
  readonly until?: Date;
  readonly wait: boolean;
  readonly stop?: true;
  readonly feed?: string;
  readonly json?: true;
}

type Work = FeedAtWork<'service' | 'pending'>;

const LOOK_MS = 1_000;
/** Longer without a page is worth a word. */
const SILENCE_MS = 30_000;
/** How long a page under way is waited for when the command is interrupted; one that is left is read again. */
const PATIENCE_MS = 1_500;

const examples = `
The feed goes on meanwhile, and its cursor stays where it is. The running daemon
reads the stretch; where none runs, this command does. Interrupted, it loses
nothing: the daemon goes on, and the same command shows it again, or goes on
where it stood.

Examples:
  $ scanfeed backfill --since 7d
  $ scanfeed backfill --since 2026-01-01 --until 2026-02-01
  Only ask for it, and look at it later:
    $ scanfeed backfill --since 2026-01-01 --no-wait
    $ scanfeed status
  End it before its end:
    $ scanfeed backfill --stop`;

/** `scanfeed backfill`: reads a stretch of the feed again, beside the daemon. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  const time = timeOption(io.clock.now);
  program
    .command('backfill')
    .description('Read a stretch of the feed again and store what is missing or newer, beside the daemon.')
    .option('--since <time>', 'delivery time to begin at: ISO 8601, a day, or a time before now such as 24h', time)
    .option('--beginning', 'begin at the beginning of the history')
    .option('--until <time>', 'delivery time to end at (default: now)', time)
    .option('--no-wait', 'do not wait until it is read')
    .option('--stop', 'end what is being read, and what waits')
    .addOption(feedOption())
    .option('--json', 'print it as JSON')
    .addHelpText('after', examples)
    .action((options: Given) => backfill(options, io));
}

async function backfill(given: Given, io: CommandProcess): Promise<void> {
  const { since = null, until = null, beginning, stop, feed, json } = given;
  const wishes = [since !== null, beginning === true, stop === true].filter(Boolean).length;
  if (wishes !== 1) throw new CommandFailure('give one of --since, --beginning and --stop', EXIT.usage);
  if (stop && until !== null) throw new CommandFailure('--until says nothing with --stop', EXIT.usage);
  requireStretch(since, until, io.clock);
  if (stop) return withFeed(io, { feed }, (work) => stopAll(work, json, io));
  await withFeed(io, { feed, need: ['service', 'pending'] }, async (work) => {
    const { joined, ...row } = await requestBackfill(work.database.sql, work.tables, work.feed.name, since, until);
    if (!json) io.write(announcement(row, joined));
    if (!given.wait) {
      if (json) io.write(toJson(work, row, joined));
      return;
    }
    const done = await readToItsEnd(row, work, io);
    io.write(json ? toJson(work, done, joined) : await summary(done, work));
    if (done.stopped) throw new CommandFailure('it was stopped before its end');
  });
}

async function stopAll(
  { database, tables, feed }: FeedAtWork<never>,
  json: true | undefined,
  { write }: CommandProcess,
): Promise<void> {
  const stopped = await stopBackfills(database.sql, tables, feed.name);
  if (json) write(`${JSON.stringify(stopped)}\n`);
  else if (stopped.length === 0) write(`No stretch of the feed ${feed.name} is being read again.\n`);
  else write(stopped.map((row) => `Stopped reading ${stretchOf(row)}: ${readSoFar(row)}.\n`).join(''));
}

/** Shows how far it is until it is over; does the work itself while no daemon holds the feed. */
async function readToItsEnd(row: RequestedBackfill, work: Work, io: CommandProcess): Promise<RequestedBackfill> {
  const progress = progressLine(io);
  let current = row;
  let leader: string | null = null;
  let interrupted = false;
  await untilStopped(
    (signal) =>
      withBackfillWorker(work, io, progress, async (worker) => {
        while (current.finishedAt === null && !signal.aborted) {
          leader = await leaderOf(work);
          await turn(current, leader, worker, progress, io, signal);
          current = await lookAt(current, work);
        }
      }),
    PATIENCE_MS,
    () => {
      interrupted = true;
    },
  )
    .catch((error) => {
      if (!interrupted) throw error;
    })
    .finally(() => progress.clear());
  if (!interrupted || current.finishedAt !== null) return current;
  throw new CommandFailure(whatFollows(current, leader), EXIT.interrupted);
}

/** Waits while another reads, or reads for a while. */
async function turn(
  row: RequestedBackfill,
  leader: string | null,
  worker: BackfillWorker,
  progress: ProgressLine,
  { clock }: CommandProcess,
  signal: AbortSignal,
): Promise<void> {
  if (leader !== null) {
    progress.show(() => describe(row, leader));
    await clock.sleep(LOOK_MS, signal);
  } else if (!(await worker.reads(signal)) && !signal.aborted) {
    progress.show(() => describe(row, 'another command'));
    await clock.sleep(LOOK_MS, signal);
  }
}

async function leaderOf({ database, tables, feed }: Work): Promise<string | null> {
  return (await readFeed(database.sql, tables, feed.name))?.leader ?? null;
}

async function lookAt({ id }: RequestedBackfill, { database, tables }: Work): Promise<RequestedBackfill> {
  const now = await readBackfill(database.sql, tables, id);
  if (now === null) throw new CommandFailure('the backfill has been removed from the database');
  return now;
}

function describe(row: RequestedBackfill, reader: string): string {
  const { entriesPerSecond, secondsLeft, idleMs } = row;
  if (idleMs === null) return `waiting for ${reader} to begin`;
  const parts = [readSoFar(row)];
  if (entriesPerSecond !== null) parts.push(`${Math.round(entriesPerSecond)}/s`);
  if (secondsLeft !== null) parts.push(`${humanSeconds(secondsLeft)} left`);
  if (idleMs > SILENCE_MS) parts.push(`no page for ${humanSeconds(idleMs / 1000)}: see the log of ${reader}`);
  return parts.join(', ');
}

function readSoFar({ entries, deliveredUpTo }: RequestedBackfill): string {
  const read = `${counted(entries, 'entry', 'entries')} read`;
  return deliveredUpTo === null ? read : `${read}, delivered up to ${toSeconds(deliveredUpTo)}`;
}

function announcement(row: RequestedBackfill, joined: boolean): string {
  if (!joined) return `Reading ${stretchOf(row)} again.\n`;
  return `Joined: ${stretchOf(row)} is being read since ${toSeconds(row.requestedAt)} (${readSoFar(row)}).\n`;
}

function stretchOf({ since, until }: RequestedBackfill): string {
  return `what was delivered from ${since === null ? 'the beginning' : toSeconds(since)} to ${toSeconds(until)}`;
}

async function summary(row: RequestedBackfill, work: Work): Promise<string> {
  const { stored, entries } = row;
  const feed = await readFeed(work.database.sql, work.tables, work.feed.name);
  const from = feed?.completeFrom ?? null;
  return [
    `${counted(entries, 'entry', 'entries')} read, ${counted(stored, 'run', 'runs')} stored that were missing, older or less complete.`,
    `The data of the feed ${work.feed.name} is complete from ${from === null ? 'the beginning' : toSeconds(from)} on.`,
  ]
    .map((line) => `${line}\n`)
    .join('');
}

function whatFollows(row: RequestedBackfill, leader: string | null): string {
  const who = leader === null ? 'the next daemon goes on with it' : `${leader} goes on with it`;
  return `interrupted (${readSoFar(row)}); ${who}, and so does the same command; \`scanfeed backfill --stop\` ends it`;
}

function toJson({ feed }: Work, row: RequestedBackfill, joined: boolean): string {
  return `${JSON.stringify({ feed: feed.name, ...row, joined })}\n`;
}

function toSeconds(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}
