import { nameStage } from './current-errors.js';
import { type Fact, factList } from './facts.js';
import { type ListedFeed, searchFeeds, summaryOfListed, type Totals, totalsOf, worstFirst } from './feed-list.js';
import { stateOfAll } from './feeds-state.js';
import { counted, describeSeconds, escapeHtml, grouped, upToMax } from './html.js';
import { pagePolicy, renderPage } from './page.js';
import { renderState, SEVERITY, signSvg } from './state.js';
import type { StatusReport } from './status-report.js';

/** The form of the search is sent to the server of the page alone. */
export const FEEDS_PAGE_POLICY = pagePolicy("'self'");

/** Maximum number of feeds on the page, which limits its size and the time to render it. */
const MAX_ROWS = 100;

export interface FeedsPage {
  /** In any order. */
  readonly feeds: readonly ListedFeed[];
  /** Text in the names to be shown; empty for all. */
  readonly search: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Renders the list of feeds, worst first. */
export function renderFeedsPage({ feeds, search, now }: FeedsPage): string {
  const totals = totalsOf(feeds);
  const state = stateOfAll(totals);
  const found = search === '' ? feeds : searchFeeds(feeds, search);
  return renderPage({
    title: `${state.headline} – scanfeed`,
    icon: state,
    heading: `<strong>${counted(feeds.length, 'feed')}</strong>`,
    links: { here: search === '' ? './' : `?${new URLSearchParams({ search })}`, root: '', json: 'status.json' },
    now,
    main: `${renderState(state)}
<section class="facts" aria-label="Facts">
${factList(factsOf(totals))}
</section>
<section class="feeds" aria-label="Feeds">
${searchForm(search)}
${table(found, captionOf(found.length, feeds.length, search))}
</section>`,
  });
}

function factsOf({ feeds, invalid, failing, stuck, leading, caughtUp, withUnknownLag, worst }: Totals): Fact[] {
  const ofWorst = [
    ...(worst === null ? [] : [linkTo(worst.name)]),
    ...(withUnknownLag === 0 ? [] : [`unknown for ${grouped(withUnknownLag)}`]),
  ];
  return [
    {
      name: 'Feeds',
      value: grouped(feeds),
      ...(invalid > 0 && { more: `${grouped(invalid)} with an invalid entry` }),
    },
    { name: 'Led by this process', value: grouped(leading) },
    { name: 'Caught up', value: grouped(caughtUp), more: `of ${grouped(leading)} led` },
    { name: 'Failing', value: grouped(failing), ...(stuck > 0 && { more: `and ${grouped(stuck)} stuck` }) },
    {
      name: 'Worst lag',
      value: worst === null ? 'Unknown' : describeSeconds(worst.lagSeconds),
      ...(worst !== null && { more: ofWorst.join('<br>') }),
    },
  ];
}

function searchForm(search: string): string {
  return `<form action="./" role="search">
<label for="search">Search by name</label>
<input type="search" id="search" name="search" value="${escapeHtml(search)}" autocomplete="off" autocapitalize="none" spellcheck="false">
<button>Search</button>${search === '' ? '' : '<a href="./">Show all feeds</a>'}
</form>`;
}

function captionOf(found: number, all: number, search: string): string {
  const what =
    search === ''
      ? counted(all, 'feed')
      : `${grouped(found)} of ${counted(all, 'feed')} ${found === 1 ? 'matches' : 'match'} “${escapeHtml(search)}”`;
  if (found === 0) return `${what}.`;
  return `${what}, worst first.${found > MAX_ROWS ? ` The first ${MAX_ROWS} are shown.` : ''}`;
}

function table(found: readonly ListedFeed[], caption: string): string {
  if (found.length === 0) return `<p class="quiet">${caption}</p>`;
  return `<table>
<caption>${caption}</caption>
<thead><tr><th scope="col">Feed</th><th scope="col">State</th><th scope="col">Lag</th></tr></thead>
<tbody>
${worstFirst(found).slice(0, MAX_ROWS).map(row).join('\n')}
</tbody>
</table>`;
}

function row(feed: ListedFeed): string {
  const { name, report, mistakes } = feed;
  const { headline, tone, sign, severity } = summaryOfListed(feed);
  const lag = report?.lagSeconds == null ? 'Unknown' : describeSeconds(report.lagSeconds);
  const details = [
    ...(severity === SEVERITY.invalid ? mistakesInWords(mistakes, report !== null) : []).map((each) => detail(each)),
    ...(report === null ? [] : detailsOf(report)),
  ];
  return `<tr class="${tone}"><th scope="row">${report === null ? escapeHtml(name) : linkTo(name)}</th><td>${signSvg(sign)}<strong>${headline}</strong>${details.join('')}</td><td>${lag}</td></tr>`;
}

function mistakesInWords(mistakes: readonly string[], runs: boolean): string[] {
  return [...mistakes, runs ? 'The feed runs with its last valid entry.' : 'The feed does not run.'];
}

/** Returns what the headline does not say, as HTML. */
function detailsOf({ currentErrors, stuckSince, pendingResults, quarantinedEntries }: StatusReport): string[] {
  const [error, ...others] = currentErrors;
  const numbers = [
    ...(pendingResults ? [counted(pendingResults, 'pending result')] : []),
    ...(quarantinedEntries ? [`${upToMax(quarantinedEntries)} in quarantine`] : []),
  ];
  return [
    ...(error === undefined ? [] : [detail(`${nameStage(error.stage)}: ${error.message}`, 'error')]),
    ...(others.length === 0 ? [] : [detail(`and ${counted(others.length, 'other error')}`)]),
    ...(stuckSince === null ? [] : [detail('The cursor does not advance.')]),
    ...(numbers.length === 0 ? [] : [detail(numbers.join(', '))]),
  ];
}

/** The space separates the lines for screen readers and in copied text. */
function detail(text: string, kind = ''): string {
  return ` <span class="quiet${kind === '' ? '' : ` ${kind}`}">${escapeHtml(text)}</span>`;
}

function linkTo(name: string): string {
  return `<a href="feeds/${escapeHtml(name)}">${escapeHtml(name)}</a>`;
}
