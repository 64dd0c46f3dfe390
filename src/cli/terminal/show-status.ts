import { type FeedReport, MAX_RECENT, type ReportedPass } from '../../storage/operator/feed-report.js';
import type { RecentError } from '../../storage/operator/recent-errors.js';
import type { ReadingPace } from '../../sync/ports/index.js';
import { counted, formatSeconds, formatTime, printable, wrapIndented } from './format.js';
import { type Column, table } from './table.js';

type Line = readonly [name: string, value: string];

const NAME_WIDTH = 17;
const ERRORS_SHOWN = 3;

/**
 * Formats the state of each feed for people. Pure.
 * @param now milliseconds since 1970
 * @param columns width of the terminal; null to keep long lines
 */
export function showStatus(
  reports: readonly FeedReport[],
  schema: string,
  { now, columns }: { readonly now: number; readonly columns: number | null },
): string {
  if (reports.length === 0) return `No feed has been started in the schema ${schema}.\n`;
  const recent = reports.reduce((sum, { storedRecently }) => sum + storedRecently, 0);
  const bound = recent >= MAX_RECENT ? 'at least ' : '';
  return reports.map((report) => showFeed(report, bound, now, columns)).join('\n');
}

function showFeed(report: FeedReport, bound: string, now: number, columns: number | null): string {
  const lines: readonly Line[] = [
    ['Feed', `${report.feed} of ${report.baseUrl}`],
    ...failing(report, now),
    ['Complete as of', asOf(report)],
    ['Complete from', report.completeFrom === null ? 'the beginning' : report.completeFrom.toISOString()],
    ['Reconciled', report.reconciledAsOf === null ? 'not yet' : `up to ${report.reconciledAsOf.toISOString()}`],
    ['Initial sync', report.initialSyncComplete ? 'complete' : `not complete yet${pace(report.pace)}`],
    ...report.passes.map(passLine),
    ['Runs', `${report.runsEstimated ? 'about ' : ''}${report.runs}${notProductive(report)}`],
    ['Recently stored', `${bound}${counted(report.storedRecently, 'run', 'runs')} in the last 5 min`],
    ['Pending results', counts(report.pending) + pendingTimes(report, now) + givenUp(report)],
    ['In quarantine', counts(report.quarantined) + quarantineTimes(report) + accepting(report)],
    ['Leader', report.leader ?? 'none: no process is writing'],
    ['Last poll', report.lastPollAt?.toISOString() ?? 'never'],
    ['Last commit', report.lastCommitAt?.toISOString() ?? 'never'],
    ['Last delivery', lastDelivery(report, now)],
    ...stuck(report),
    ...lastErrors(report),
  ];
  return lines.map((line) => showLine(line, columns)).join('') + positions(report);
}

function showLine([name, value]: Line, columns: number | null): string {
  return `${(name === '' ? '' : `${name}:`).padEnd(NAME_WIDTH)}${wrapIndented(printable(value), NAME_WIDTH, columns)}\n`;
}

function positions({ positions: earlier }: FeedReport): string {
  return earlier.length === 0 ? '' : table(earlier, POSITIONS);
}

const POSITIONS: readonly Column<FeedReport['positions'][number]>[] = [
  { head: 'CURSOR', cell: ({ id }) => id, right: true },
  { head: 'NOTED', cell: ({ notedAt }) => formatTime(notedAt) },
  { head: 'REASON', cell: ({ reason }) => reason },
  { head: 'DELIVERED UP TO', cell: ({ deliveredUpTo }) => (deliveredUpTo === null ? '-' : formatTime(deliveredUpTo)) },
];

const PASSES: Readonly<Record<string, string>> = {
  recent: 'Recent pass',
  full: 'Full pass',
  history: 'History pass',
  backfill: 'Backfill',
};

function passLine({ kind, since, until, deliveredUpTo, pace: measured }: ReportedPass): Line {
  const progress = deliveredUpTo === null ? 'not started' : `at ${formatTime(deliveredUpTo)}${pace(measured)}`;
  const range = `${since === null ? 'the beginning' : formatTime(since)} to ${formatTime(until)}`;
  return [PASSES[kind] ?? kind, `${range}: ${progress}`];
}

function pace(measured: ReadingPace | null): string {
  if (measured === null) return '';
  const { entriesPerSecond, secondsLeft } = measured;
  const left = secondsLeft === null ? '' : `, ${formatSeconds(secondsLeft)} left`;
  return `, ${Math.round(entriesPerSecond)} entries/s${left}`;
}

/** Describes what fails now. Messages are not cut, because they contain the remedy. */
function failing({ recentErrors, writesRefused }: FeedReport, now: number): readonly Line[] {
  const errors = recentErrors.filter(({ ongoing }) => ongoing);
  const refused: readonly Line[] = writesRefused === null ? [] : [['Failing', writesRefused]];
  return [
    ...refused,
    ...errors.map((error): Line => [error.held ? 'Action required' : 'Failing', describeOngoing(error, now)]),
  ];
}

export function describeOngoing(
  { since, failures, nextTryAt, stage, kind, message, runbook }: RecentError,
  now: number,
): string {
  const lasts = formatSeconds(Math.max(0, now - Date.parse(since)) / 1_000);
  const counts = `${counted(failures, 'failure', 'failures')}, ${nextAttempt(nextTryAt, now)}`;
  return `since ${formatTime(since)}, for ${lasts}, ${counts}: ${stage} ${kind}: ${message} (runbook ${runbook})`;
}

/** Describes when a failure is retried. */
export function nextAttempt(nextTryAt: string, now: number): string {
  const left = Date.parse(nextTryAt) - now;
  return `next attempt ${left >= 1_000 ? `in ${formatSeconds(left / 1_000)}` : 'now'}`;
}

function lastErrors({ recentErrors, writesRefused }: FeedReport): readonly Line[] {
  const ended = recentErrors.filter(({ ongoing }) => !ongoing).slice(0, ERRORS_SHOWN);
  const isFailing = writesRefused !== null || recentErrors.some(({ ongoing }) => ongoing);
  if (ended.length === 0) return isFailing ? [] : [['Last errors', 'none']];
  return ended.map((error, index) => {
    const { since, failures, stage, kind, message } = error;
    const line = `${formatTime(since)}, ${lasted(error)}, ${counted(failures, 'failure', 'failures')}: ${stage} ${kind}: ${message}`;
    return [index === 0 ? 'Last errors' : '', line];
  });
}

function lasted({ since, lastAt, endedAt }: RecentError): string {
  const seconds = (until: string) => formatSeconds(Math.max(0, Date.parse(until) - Date.parse(since)) / 1_000);
  if (endedAt !== null) return `lasted ${seconds(endedAt)}`;
  return `lasted at least ${seconds(lastAt)}, until its process was gone`;
}

/** Returns a line only if the feed is stuck. */
function stuck({ stuckSince }: FeedReport): readonly Line[] {
  if (stuckSince === null) return [];
  const what = `${STUCK}. Ask the operators of the service, or see \`scanfeed rewind\``;
  return [['Stuck', `since ${stuckSince.toISOString()}: ${what}`]];
}

const STUCK =
  'the cursor that the service returns is missing, does not move or repeats; its entries are stored, but the feed does not advance';

function asOf({ dataCompleteAsOf, lagSeconds }: FeedReport): string {
  if (dataCompleteAsOf === null || lagSeconds === null) return 'not known yet';
  return `${dataCompleteAsOf.toISOString()} (${formatSeconds(lagSeconds)} ago)`;
}

function lastDelivery({ lastDeliveredAt }: FeedReport, now: number): string {
  if (lastDeliveredAt === null) return 'none';
  return `${lastDeliveredAt.toISOString()} (${formatSeconds(Math.max(0, now - lastDeliveredAt.getTime()) / 1_000)} ago)`;
}

function notProductive({ runsWithoutData, runsWithEarlierTestMode }: FeedReport): string {
  const without = runsWithoutData === 0 ? '' : `; ${runsWithoutData} completed without usable data, never productive`;
  const earlier = runsWithEarlierTestMode;
  return `${without}${earlier === 0 ? '' : `; ${earlier} in test mode only because an earlier revision says so`}`;
}

function counts(byReason: Readonly<Record<string, number>>): string {
  const total = Object.values(byReason).reduce((sum, number) => sum + number, 0);
  if (total === 0) return 'none';
  const reasons = Object.entries(byReason).map(([reason, number]) => `${number} ${reason}`);
  return `${total} (${reasons.join(', ')})`;
}

function pendingTimes({ pendingSince, pendingNextTryAt, leader }: FeedReport, now: number): string {
  if (pendingSince === null) return '';
  const age = formatSeconds(Math.max(0, now - pendingSince.getTime()) / 1_000);
  if (leader === null) return `; the oldest for ${age}, not retried without a leader, see \`scanfeed resolve --help\``;
  const left = pendingNextTryAt === null ? 0 : pendingNextTryAt.getTime() - now;
  return `; the oldest for ${age}, next retry ${left > 0 ? `in ${formatSeconds(left / 1_000)}` : 'now'}`;
}

function givenUp({ givenUp: results }: FeedReport): string {
  return results === 0 ? '' : `; ${results} given up`;
}

function accepting({ acceptsBadUntil: until }: FeedReport): string {
  return until === null
    ? ''
    : `; any number is accepted until ${formatTime(until)}, see \`scanfeed quarantine accept\``;
}

function quarantineTimes({ quarantinedLastAt }: FeedReport): string {
  if (quarantinedLastAt === null) return '';
  return `; last delivered ${formatTime(quarantinedLastAt)}, see \`scanfeed quarantine list\``;
}
