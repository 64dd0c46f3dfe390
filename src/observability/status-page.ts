import { createHash } from 'node:crypto';
import type { CurrentReading, StatusReport } from './status-report.js';

const STYLE = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.5rem; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
li { margin-bottom: .5rem; overflow-wrap: anywhere; }
a:focus-visible { outline: 3px solid; outline-offset: 2px; }
`;

/** Nothing may load or run but the one style sheet above. */
export const STATUS_PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** The status as a page: plain HTML that reads well aloud, in small windows and without colours. */
export function renderStatusPage(report: StatusReport): string {
  const facts = Object.entries(factsOf(report));
  const rows = facts.map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(`${headline(report)} – scanfeed ${report.feed}`)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>scanfeed</h1>
<p>${escapeHtml(`${headline(report)}.`)}</p>
<h2>Feed</h2>
<dl>
${rows.join('\n')}
</dl>
<h2>Troubles</h2>
${renderTroubles(report)}
</main>
<nav aria-label="Other views">
<a href="metrics">Metrics</a> · <a href="status.json">Status as JSON</a> · <a href="livez">Liveness</a> · <a href="readyz">Readiness</a>
</nav>
</body>
</html>
`;
}

function headline({ role, caughtUp, stuckSince, troubles }: StatusReport): string {
  if (troubles.length > 0) return 'In trouble, trying again';
  if (stuckSince !== null) return 'Stuck, asking again';
  if (role === 'starting') return 'Starting';
  if (role === 'standby') return 'Standing by for another process';
  return caughtUp ? 'Caught up' : 'Catching up';
}

function factsOf(report: StatusReport): Readonly<Record<string, string>> {
  const { lagSeconds } = report;
  return {
    Feed: report.feed,
    Role: report.role,
    'Held by': report.leaseHolder ?? 'nobody',
    'Data complete as of': report.dataCompleteAsOf ?? 'unknown',
    Lag: lagSeconds === null ? 'unknown' : describeSeconds(lagSeconds),
    'History complete': report.backfillComplete ? 'yes' : 'not yet',
    ...Object.fromEntries(
      report.readings.map((reading) => [READINGS[reading.reading] ?? reading.reading, far(reading)]),
    ),
    'Last poll': report.lastPollAt ?? 'none yet',
    'Last commit': report.lastCommitAt ?? 'none yet',
    ...(report.stuckSince !== null && {
      Stuck: `since ${report.stuckSince}: the cursor that the service gives is missing, stands still or goes in circles`,
    }),
    'Pending results': report.pendingResults?.toString() ?? 'unknown',
    'In quarantine': report.quarantinedEntries?.toString() ?? 'unknown',
    'Running since': report.startedAt,
    Version: report.version,
  };
}

const READINGS: Readonly<Record<string, string>> = {
  feed: 'Reading the feed',
  history: 'Reading the history',
  request: 'Reading a stretch again',
};

function far({ deliveredUpTo, entriesPerSecond, secondsLeft }: CurrentReading): string {
  const parts = [`up to ${deliveredUpTo ?? 'its beginning'}`];
  if (entriesPerSecond !== null) parts.push(`${entriesPerSecond} entries/s`);
  if (secondsLeft !== null) parts.push(`${describeSeconds(secondsLeft)} left`);
  return parts.join(', ');
}

function renderTroubles({ troubles }: StatusReport): string {
  if (troubles.length === 0) return '<p>None.</p>';
  const items = troubles.map(
    ({ stage, kind, message, since, failures }) =>
      `<li><strong>${escapeHtml(stage)}</strong> (${escapeHtml(kind)}): ${escapeHtml(message)}<br>since ${escapeHtml(since)}, ${failures} failed in a row</li>`,
  );
  return `<ul>\n${items.join('\n')}\n</ul>`;
}

/** The two largest units say enough. */
function describeSeconds(seconds: number): string {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
