import { nameStage, runbookLink } from './current-errors.js';
import { counted, describeSeconds, escapeHtml, grouped, timeElement, upToMax } from './html.js';
import type { CurrentPass, StatusReport } from './status-report.js';

/** A labelled value, as HTML. */
export interface Fact {
  readonly name: string;
  readonly value: string;
  readonly more?: string;
}

/** Returns the most important facts, shown in large type. */
export function firstFacts(report: StatusReport, now: number, root: string): Fact[] {
  const { lagSeconds, dataCompleteAsOf, pendingResults, quarantinedEntries } = report;
  return [
    { name: 'Lag', value: lagSeconds === null ? 'Unknown' : describeSeconds(lagSeconds) },
    completeAsOf(dataCompleteAsOf, now),
    ...report.passes.map(progressOf),
    {
      name: 'Pending results',
      value: pendingResults === null ? 'Unknown' : upToMax(pendingResults),
      ...(pendingResults !== null && pendingResults > 0 && { more: 'retried automatically' }),
    },
    {
      name: 'In quarantine',
      value: quarantinedEntries === null ? 'Unknown' : upToMax(quarantinedEntries),
      ...(quarantinedEntries !== null &&
        quarantinedEntries > 0 && {
          more: `see <code>scanfeed quarantine list</code>${runbookLink('ScanfeedEntriesQuarantined', root)}`,
        }),
    },
  ];
}

/** Shows the time of day in large type if it is today, otherwise the date. */
function completeAsOf(iso: string | null, now: number): Fact {
  const name = 'Data complete as of';
  if (iso === null) return { name, value: 'Unknown' };
  const [day, time] = [iso.slice(0, 10), iso.slice(11, 19)];
  const isToday = new Date(now).toISOString().startsWith(day);
  const value = `<time datetime="${escapeHtml(iso)}">${escapeHtml(isToday ? time : day)}</time>`;
  return { name, value, more: escapeHtml(isToday ? `UTC, ${day}` : `${time} UTC`) };
}

function progressOf({ pass, deliveredUpTo, entriesPerSecond, secondsLeft }: CurrentPass): Fact {
  const name = escapeHtml(nameStage(pass));
  const more = [
    deliveredUpTo === null ? 'at the beginning' : `at ${timeElement(deliveredUpTo)}`,
    ...(entriesPerSecond === null
      ? []
      : [`${grouped(entriesPerSecond < 10 ? entriesPerSecond : Math.round(entriesPerSecond))} entries/s`]),
  ].join(', ');
  return { name, value: secondsLeft === null ? 'In progress' : `${describeSeconds(secondsLeft)} left`, more };
}

/** Returns the remaining facts. */
export function otherFacts(report: StatusReport, now: number): Fact[] {
  const { lastDeliveredAt, runsWithoutData } = report;
  const when = (iso: string | null) => (iso === null ? 'None yet' : timeElement(iso));
  return [
    { name: 'Initial sync', value: report.initialSyncComplete ? 'Complete' : 'Not complete yet' },
    { name: 'Last poll', value: when(report.lastPollAt) },
    { name: 'Last commit', value: when(report.lastCommitAt) },
    {
      name: 'Last delivery',
      value: when(lastDeliveredAt),
      ...(lastDeliveredAt !== null && { more: `${describeSeconds(secondsSince(lastDeliveredAt, now))} ago` }),
    },
    { name: 'Completed without data', value: runsWithoutData === null ? 'Unknown' : upToMax(runsWithoutData) },
    ...(report.acceptsBadUntil === null
      ? []
      : [{ name: 'Accepts unusable entries', value: `Until ${timeElement(report.acceptsBadUntil)}` }]),
    { name: 'Stored by this process', value: counted(report.runsWritten, 'run') },
    { name: 'Running since', value: timeElement(report.startedAt) },
    { name: 'Version', value: escapeHtml(report.version) },
  ];
}

/** Returns the age of a time of the service, whose clock may be ahead. */
function secondsSince(iso: string, now: number): number {
  return Math.max(0, now - Date.parse(iso)) / 1000;
}

/** Renders facts in their order. */
export function factList(facts: readonly Fact[]): string {
  const items = facts.map(({ name, value, more }) => {
    const below = more === undefined ? '' : ` <span class="quiet">${more}</span>`;
    return `<div><dt>${name}</dt><dd>${value}${below}</dd></div>`;
  });
  return `<dl>
${items.join('\n')}
</dl>`;
}
