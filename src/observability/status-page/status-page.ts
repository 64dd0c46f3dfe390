import { lagChart, runsChart } from './charts.js';
import { renderCurrentErrors } from './current-errors.js';
import { factList, firstFacts, otherFacts } from './facts.js';
import { escapeHtml } from './html.js';
import { type PageLinks, pagePolicy, renderFrame, renderPage } from './page.js';
import type { RecentMinute } from './recent-history.js';
import { RUNBOOK, renderState, stateOf } from './state.js';
import type { StatusReport } from './status-report.js';
import { windowOf } from './window.js';

export const STATUS_PAGE_POLICY = pagePolicy("'none'");

export interface StatusPage {
  readonly report: StatusReport;
  /** Oldest first. */
  readonly recent: readonly RecentMinute[];
  /** Whether the page is one of many, at `feeds/NAME` below the list of feeds, or the only one. */
  readonly listed: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Renders the status page of one feed. */
export function renderStatusPage({ report, recent, now, listed }: StatusPage): string {
  const state = stateOf(report);
  const window = windowOf(recent, now);
  const feed = escapeHtml(report.feed);
  const links = listed ? linksBelowList(report.feed) : LINKS;
  return renderPage({
    title: `${state.headline} – scanfeed ${report.feed}`,
    icon: state,
    heading: `${listed ? '<a href="../">All feeds</a> · ' : ''}feed <strong>${feed}</strong>`,
    links,
    now,
    main: `${renderState(state)}
${renderCurrentErrors(report, now, links.root)}<section class="facts" aria-label="Facts">
${factList(firstFacts(report, now, links.root))}
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

/** Renders a runbook in the style of the status page. @param content HTML of the build */
export function renderRunbook(name: string, content: string): string {
  return renderFrame({
    title: `${name === 'README' ? 'Runbooks' : name} – scanfeed`,
    icon: RUNBOOK,
    heading: '<a href="../">Status</a>',
    aside: '<a href="./">All runbooks</a>',
    body: `<main><section class="text">\n${content}</section></main>`,
  });
}

const LINKS: PageLinks = { here: './', root: '', json: 'status.json' };

function linksBelowList(feed: string): PageLinks {
  return { here: feed, root: '../', json: `${feed}/status.json` };
}
