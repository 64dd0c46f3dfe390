import { lagChart, runsChart } from './charts.js';
import { renderCurrentErrors } from './current-errors.js';
import { factList, firstFacts, otherFacts } from './facts.js';
import { escapeHtml } from './html.js';
import type { RecentMinute } from './minute-ring.js';
import { type PageLinks, pagePolicy, renderPage, type Showing } from './page.js';
import { renderState, stateOf } from './state.js';
import type { StatusReport } from './status-report.js';
import { STYLE } from './style.js';
import { windowOf } from './window.js';

export const STATUS_PAGE_POLICY = pagePolicy(STYLE, "'none'");

export interface StatusPage extends Showing {
  readonly report: StatusReport;
  /** Oldest first. */
  readonly recent: readonly RecentMinute[];
  /** Whether the page is one of many, at `feeds/NAME` below the list of feeds, or the only one. */
  readonly listed: boolean;
}

/** Renders the status page of one feed. */
export function renderStatusPage({ report, recent, now, refreshed, listed }: StatusPage): string {
  const state = stateOf(report);
  const window = windowOf(recent, now);
  const feed = escapeHtml(report.feed);
  return renderPage({
    title: `${state.headline} – scanfeed ${report.feed}`,
    style: STYLE,
    heading: `${listed ? '<a href="../">All feeds</a> · ' : ''}feed <strong>${feed}</strong>`,
    links: listed ? linksBelowList(report.feed) : LINKS,
    now,
    refreshed,
    main: `${renderState(state)}
${renderCurrentErrors(report, now)}<section class="facts" aria-label="Facts">
${factList(firstFacts(report, now))}
</section>
<div class="charts">
${lagChart(window)}
${runsChart(window)}
</div>
<section class="more" aria-label="More facts">
${factList(otherFacts(report, now))}
</section>`,
  });
}

const LINKS: PageLinks = { here: './', refreshing: '?refresh', root: '', json: 'status.json' };

function linksBelowList(feed: string): PageLinks {
  return { here: feed, refreshing: '?refresh', root: '../', json: `${feed}/status.json` };
}
