import { createHash } from 'node:crypto';
import { chartTable, lagChart, runsChart } from './charts.js';
import { renderCurrentErrors } from './current-errors.js';
import { type Fact, firstFacts, otherFacts } from './facts.js';
import { escapeHtml, timeElement } from './html.js';
import type { RecentMinute } from './recent-history.js';
import { type State, stateOf } from './state.js';
import type { StatusReport } from './status-report.js';
import { STYLE } from './style.js';
import { windowOf } from './window.js';

/** Content security policy: only the page's own style sheet is allowed, and no script. */
export const STATUS_PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

const REFRESH_SECONDS = 30;

export interface StatusPage {
  readonly report: StatusReport;
  /** Oldest first. */
  readonly recent: readonly RecentMinute[];
  /** Milliseconds since 1970. */
  readonly now: number;
  /**
   * Whether the page reloads itself. Only on request: a reload takes screen readers back to the beginning (WCAG 2.2, 3.2.5).
   */
  readonly refreshed: boolean;
}

/** Renders the status page: plain HTML without scripts, for windows of any size and for screen readers. */
export function renderStatusPage({ report, recent, now, refreshed }: StatusPage): string {
  const state = stateOf(report);
  const window = windowOf(recent, now);
  const feed = escapeHtml(report.feed);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${refreshed ? `<meta http-equiv="refresh" content="${REFRESH_SECONDS}">\n` : ''}<title>${escapeHtml(state.headline)} – scanfeed ${feed}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<p><strong>scanfeed</strong> · feed <strong>${feed}</strong></p>
<p>As of ${timeElement(new Date(now).toISOString())}</p>
</header>
<main>
${renderState(state)}
${renderCurrentErrors(report, now)}<section class="facts" aria-label="Facts">
${factList(firstFacts(report, now))}
</section>
<div class="charts">
${lagChart(window)}
${runsChart(window)}
</div>
<section>
${chartTable(window)}
</section>
<section class="more" aria-label="More facts">
${factList(otherFacts(report))}
</section>
</main>
<footer>
<nav aria-label="Refresh">
${
  refreshed
    ? `<a href="./">Stop refreshing every ${REFRESH_SECONDS} s</a>`
    : `<a href="./">Refresh</a><a href="?refresh">Refresh every ${REFRESH_SECONDS} s</a>`
}
</nav>
<nav aria-label="Other views">
<a href="runbooks/">Runbooks</a><a href="metrics">Metrics</a><a href="status.json">Status as JSON</a><a href="livez">Liveness</a><a href="readyz">Readiness</a>
</nav>
</footer>
</body>
</html>
`;
}

function renderState({ headline, sentence, leader, tone, sign }: State): string {
  return `<section class="state ${tone}">
<svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><circle cx="12" cy="12" r="10"/><path d="${sign}"/></svg>
<h1>${escapeHtml(headline)}</h1>
<p>${escapeHtml(sentence)}</p>
<p class="quiet">${escapeHtml(leader)}</p>
</section>`;
}

function factList(facts: readonly Fact[]): string {
  const items = facts.map(({ name, value, more }) => {
    const below = more === undefined ? '' : ` <span class="quiet">${more}</span>`;
    return `<div><dt>${name}</dt><dd>${value}${below}</dd></div>`;
  });
  return `<dl>
${items.join('\n')}
</dl>`;
}
