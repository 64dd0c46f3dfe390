import { nameStage } from './current-errors.js';
import { type Fact, factList } from './facts.js';
import { type ListedFeed, type Totals, totalsOf, worstFirst } from './feed-list.js';
import { stateOfAll } from './feeds-state.js';
import { counted, describeSeconds, escapeHtml, grouped, upToMax } from './html.js';
import { renderPage } from './page.js';
import { alarm, renderState, signSvg, summaryOf } from './state.js';
import type { StatusReport } from './status-report.js';

/** Maximum number of feeds on the page, which limits its size and the time to render it. */
const MAX_ROWS = 1_000;

/**
 * Renders the list of feeds, worst first.
 * @param feeds in any order
 * @param now milliseconds since 1970
 */
export function renderFeedsPage(feeds: readonly ListedFeed[], now: number): string {
  const totals = totalsOf(feeds);
  const state = stateOfAll(totals);
  return renderPage({
    title: `${state.headline} – scanfeed`,
    state,
    heading: `<strong>${counted(feeds.length, 'feed')}</strong>`,
    links: { here: './', root: '', json: 'status.json' },
    now,
    main: `${renderState(state)}
<section class="facts" aria-label="Facts">
${factList(factsOf(totals))}
</section>
<section class="feeds" aria-label="Feeds">
${table(feeds)}
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

function table(feeds: readonly ListedFeed[]): string {
  if (feeds.length === 0) return '<p class="quiet">0 feeds.</p>';
  const shown = feeds.length > MAX_ROWS ? ` The first ${grouped(MAX_ROWS)} are shown.` : '';
  return `<table>
<caption>${counted(feeds.length, 'feed')}, worst first.${shown}</caption>
<thead><tr><th scope="col">Feed</th><th scope="col">State</th><th scope="col">Lag</th></tr></thead>
<tbody>
${worstFirst(feeds).slice(0, MAX_ROWS).map(row).join('\n')}
</tbody>
</table>`;
}

function row({ name, report, mistakes }: ListedFeed): string {
  const isInvalid = mistakes.length > 0 || report === null;
  const { headline, tone, sign } = isInvalid ? alarm('bad', 'Invalid entry') : summaryOf(report);
  const lag = report?.lagSeconds == null ? 'Unknown' : describeSeconds(report.lagSeconds);
  const details = [
    ...(isInvalid ? mistakesInWords(mistakes, report !== null) : []).map((each) => detail(each)),
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
