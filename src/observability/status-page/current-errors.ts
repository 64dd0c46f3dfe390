import { counted, describeSeconds, escapeHtml, timeElement } from './html.js';
import type { StatusReport } from './status-report.js';

/**
 * Renders the current failures with their durations, next attempts and remedies; empty if there are none.
 * @param root the folder of the runbooks, relative to the page
 */
export function renderCurrentErrors({ currentErrors, stuckSince }: StatusReport, now: number, root: string): string {
  const stuck =
    stuckSince === null
      ? []
      : [
          `<li><strong>The cursor does not advance</strong><br>The cursor that the service returns is missing, does not move or repeats. The entries are stored, and the position is polled again every poll interval. Ask the operators of the service, or see <code>scanfeed rewind</code>.${sinceWhen(stuckSince, now)}${runbookLink('ScanfeedLagHigh', root)}</li>`,
        ];
  const items = currentErrors.map(
    ({ stage, kind, message, held, runbook, since, failures, nextTryAt }) =>
      `<li><strong>${escapeHtml(nameStage(stage))}</strong>${held ? ' is held' : ''} (${escapeHtml(kind)})<br>${escapeHtml(message)}${kind === 'internal' ? BUG : ''}${sinceWhen(since, now, `, ${counted(failures, 'failure')} in a row, next attempt ${when(nextTryAt, now)}`)}${runbookLink(runbook, root)}</li>`,
  );
  if (items.length + stuck.length === 0) return '';
  return `<section class="errors ${currentErrors.some(({ held }) => held) ? 'bad' : 'warn'}">
<h2>Current errors</h2>
<ul>
${[...items, ...stuck].join('\n')}
</ul>
</section>
`;
}

/** Returns a link to a runbook. */
export function runbookLink(name: string, root: string): string {
  return ` <a href="${root}runbooks/${escapeHtml(name)}.md">Runbook</a>`;
}

const BUG = '<br>This is a bug in scanfeed: report it with the surrounding log lines.';

const STAGES: Readonly<Record<string, string>> = {
  feed: 'Reading the feed',
  result: 'Loading results',
  lease: 'Taking and keeping the lease',
  recent: 'Recent pass',
  full: 'Full pass',
  history: 'Reading the history',
  backfill: 'Backfill',
};

/** Returns the name of a stage for people, as plain text. */
export function nameStage(stage: string): string {
  return STAGES[stage] ?? stage;
}

function when(iso: string, now: number): string {
  const seconds = (Date.parse(iso) - now) / 1000;
  return seconds >= 1 ? `in ${describeSeconds(seconds)}` : 'now';
}

function sinceWhen(iso: string, now: number, more = ''): string {
  const seconds = Math.max(0, now - Date.parse(iso)) / 1000;
  return `<br><span class="quiet">for ${describeSeconds(seconds)}, since ${timeElement(iso)}${more}</span>`;
}
