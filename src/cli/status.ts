import type { Command } from 'commander';
import { readSettings } from '../settings.js';
import { type FeedReport, type ReportedBackfill, type ReportedPace, readFeedReports } from '../storage/feed-report.js';
import { tablesOf } from '../storage/schema.js';
import { humanSeconds } from './human.js';
import { checkSchema, withDatabase } from './open-database.js';

const examples = `
Examples:
  $ scanfeed status
  How many seconds behind, for a script:
    $ scanfeed status --json | jq '.[0].lagSeconds'`;

/** `scanfeed status`: where the feeds of the schema stand, read from the database alone. */
export function register(program: Command): void {
  program
    .command('status')
    .description('Show how fresh and how complete the data is, who writes it, and what is pending or quarantined.')
    .option('--json', 'print it as JSON')
    .addHelpText('after', examples)
    .action(async ({ json }: { json?: true }) => {
      const { database: settings } = readSettings(undefined, { need: ['database'] });
      const reports = await withDatabase(settings, async (database) => {
        await checkSchema(settings, database);
        return readFeedReports(database.sql, tablesOf(settings.schema));
      });
      process.stdout.write(json ? `${JSON.stringify(reports)}\n` : describe(reports, settings.schema));
    });
}

function describe(reports: readonly FeedReport[], schema: string): string {
  if (reports.length === 0) return `No feed has been started in the schema ${schema}.\n`;
  return reports.map((report) => `${describeFeed(report)}\n`).join('\n');
}

function describeFeed(report: FeedReport): string {
  const lines: readonly (readonly [string, string])[] = [
    ['Feed', `${report.feed} of ${report.baseUrl}`],
    ['Complete as of', asOf(report)],
    ['Complete from', report.completeFrom === null ? 'the beginning' : report.completeFrom.toISOString()],
    ['History', report.backfillComplete ? 'read to its end' : `still being read${pace(report.pace)}`],
    ...report.backfills.map(reading),
    ['Runs', report.runsEstimated ? `about ${report.runs}` : String(report.runs)],
    ['Pending results', counts(report.pending)],
    ['In quarantine', counts(report.quarantined)],
    ['Leader', report.leader ?? 'none: no process is writing'],
    ['Last poll', report.lastPollAt?.toISOString() ?? 'never'],
    ['Last delivery', report.lastDeliveredAt?.toISOString() ?? 'none'],
    ...stuck(report),
  ];
  return lines.map(([name, value]) => `${`${name}:`.padEnd(17)}${value}`).join('\n');
}

function reading({ kind, since, until, deliveredUpTo, pace: measured }: ReportedBackfill): readonly [string, string] {
  const stands = deliveredUpTo === null ? 'not begun' : `at ${toSeconds(deliveredUpTo)}${pace(measured)}`;
  if (kind === 'history') return ['Behind it', stands];
  return ['Backfill', `${since === null ? 'the beginning' : toSeconds(since)} to ${toSeconds(until)}: ${stands}`];
}

function pace(measured: ReportedPace | null): string {
  if (measured === null) return '';
  const { entriesPerSecond, secondsLeft } = measured;
  const left = secondsLeft === null ? '' : `, ${humanSeconds(secondsLeft)} left`;
  return `, ${Math.round(entriesPerSecond)} entries/s${left}`;
}

function toSeconds(time: string): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}

/** Only where there is something to say. */
function stuck({ stuckSince }: FeedReport): readonly (readonly [string, string])[] {
  if (stuckSince === null) return [];
  const what = `${STUCK}. Ask the operators of the service, or see \`scanfeed rewind\``;
  return [['Stuck', `since ${stuckSince.toISOString()}: ${what}`]];
}

const STUCK =
  'the cursor that the service gives is missing, stands still or goes in circles; entries are stored, but the feed does not get on';

function asOf({ dataCompleteAsOf, lagSeconds }: FeedReport): string {
  if (dataCompleteAsOf === null || lagSeconds === null) return 'not known yet';
  return `${dataCompleteAsOf.toISOString()} (${humanSeconds(lagSeconds)} ago)`;
}

function counts(byReason: Readonly<Record<string, number>>): string {
  const total = Object.values(byReason).reduce((sum, number) => sum + number, 0);
  if (total === 0) return 'none';
  const reasons = Object.entries(byReason).map(([reason, number]) => `${number} ${reason}`);
  return `${total} (${reasons.join(', ')})`;
}
