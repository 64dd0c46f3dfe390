import { counted, describeSeconds, escapeHtml, grouped, timeElement } from './html.js';
import type { CurrentPass, StatusReport } from './status-report.js';

/** HTML. */
export interface Fact {
  readonly name: string;
  readonly value: string;
  readonly more?: string;
}

const PASSES: Readonly<Record<string, string>> = {
  feed: 'Reading the feed',
  history: 'Reading the history',
  backfill: 'Backfill',
  recent: 'Recent pass',
  full: 'Full pass',
};

/** What is looked for first, in large type. */
export function firstFacts(report: StatusReport, now: number): Fact[] {
  const { lagSeconds, dataCompleteAsOf, pendingResults, quarantinedEntries } = report;
  return [
    { name: 'Lag', value: lagSeconds === null ? 'Not known' : describeSeconds(lagSeconds) },
    completeAsOf(dataCompleteAsOf, now),
    ...report.passes.map(progressOf),
    {
      name: 'Pending results',
      value: pendingResults === null ? 'Not known' : grouped(pendingResults),
      ...(pendingResults !== null && pendingResults > 0 && { more: 'tried again by itself' }),
    },
    {
      name: 'In quarantine',
      value: quarantinedEntries === null ? 'Not known' : grouped(quarantinedEntries),
      ...(quarantinedEntries !== null &&
        quarantinedEntries > 0 && { more: 'see <code>scanfeed quarantine list</code>' }),
    },
  ];
}

/** Of what was today, the time is what counts; of all else, the day. */
function completeAsOf(iso: string | null, now: number): Fact {
  const name = 'Data complete as of';
  if (iso === null) return { name, value: 'Not known' };
  const [day, time] = [iso.slice(0, 10), iso.slice(11, 19)];
  const isToday = new Date(now).toISOString().startsWith(day);
  const value = `<time datetime="${escapeHtml(iso)}">${escapeHtml(isToday ? time : day)}</time>`;
  return { name, value, more: escapeHtml(isToday ? `UTC, ${day}` : `${time} UTC`) };
}

function progressOf({ pass, deliveredUpTo, entriesPerSecond, secondsLeft }: CurrentPass): Fact {
  const name = PASSES[pass] ?? escapeHtml(pass);
  const more = [
    deliveredUpTo === null ? 'from its beginning' : `at ${timeElement(deliveredUpTo)}`,
    ...(entriesPerSecond === null
      ? []
      : [`${grouped(entriesPerSecond < 10 ? entriesPerSecond : Math.round(entriesPerSecond))} entries/s`]),
  ].join(', ');
  return { name, value: secondsLeft === null ? 'Under way' : `${describeSeconds(secondsLeft)} left`, more };
}

/** What is looked for second. */
export function otherFacts(report: StatusReport): Fact[] {
  const when = (iso: string | null) => (iso === null ? 'None yet' : timeElement(iso));
  return [
    { name: 'History', value: report.backfillComplete ? 'Complete' : 'Not complete yet' },
    { name: 'Last poll', value: when(report.lastPollAt) },
    { name: 'Last commit', value: when(report.lastCommitAt) },
    { name: 'Stored by this process', value: counted(report.runsWritten, 'run') },
    { name: 'Running since', value: timeElement(report.startedAt) },
    { name: 'Version', value: escapeHtml(report.version) },
  ];
}
