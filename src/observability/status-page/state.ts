import { describeSeconds, escapeHtml } from './html.js';
import type { StatusReport } from './status-report.js';
import { TONES } from './style.js';

/** A state in a few words, as plain text. */
export interface State extends Summary {
  readonly sentence: string;
  readonly leader: string;
}

export interface Icon {
  readonly tone: keyof typeof TONES;
  /** SVG path in a 24 by 24 view box, so that the state does not depend on colour alone. */
  readonly sign: string;
}

export interface Summary extends Icon {
  readonly headline: string;
  /** How urgently the state needs attention; missing if it needs none. */
  readonly severity?: number;
}

/** Severities; from `held` on, the state lasts until an operator acts. */
export const SEVERITY = { quarantine: 1, stuck: 2, failing: 3, held: 4, invalid: 5 } as const;

export const STARTING: Summary = { headline: 'Starting', tone: 'calm', sign: 'M7.5 12h.01M12 12h.01M16.5 12h.01' };
export const STANDING_BY: Summary = { headline: 'Standing by', tone: 'calm', sign: 'M9.5 8.5v7M14.5 8.5v7' };
export const CAUGHT_UP: Summary = { headline: 'Caught up', tone: 'good', sign: 'M7.5 12.5l3 3 6-6.5' };
export const CATCHING_UP: Summary = { headline: 'Catching up', tone: 'busy', sign: 'M8 8l4 4-4 4M13 8l4 4-4 4' };
export const RUNBOOK: Icon = { tone: 'calm', sign: 'M8 8.5h8M8 12h8M8 15.5h5' };

/** Returns the summary of a state that needs attention. */
export function alarm(severity: number, headline: string): Summary {
  return { headline, tone: severity >= SEVERITY.held ? 'bad' : 'warn', sign: 'M12 7v6M12 16.5v.5', severity };
}

export function stateOf(report: StatusReport): State {
  return { ...summaryOf(report), sentence: freshness(report), leader: leaderOf(report) };
}

export function summaryOf(report: StatusReport): Summary {
  const { stuckSince, currentErrors, quarantinedEntries } = report;
  if (currentErrors.some(({ held }) => held)) return alarm(SEVERITY.held, 'Action required');
  if (currentErrors.length > 0) return alarm(SEVERITY.failing, 'Failing, retrying');
  if (stuckSince !== null) return alarm(SEVERITY.stuck, 'Stuck, retrying');
  const usual = usualSummary(report);
  return quarantinedEntries ? alarm(SEVERITY.quarantine, `${usual.headline}, entries in quarantine`) : usual;
}

function usualSummary({ role, caughtUp }: StatusReport): Summary {
  if (role === 'starting') return STARTING;
  if (role === 'standby') return STANDING_BY;
  return caughtUp ? CAUGHT_UP : CATCHING_UP;
}

function leaderOf({ role, leaseHolder, currentErrors }: StatusReport): string {
  if (role === 'leader') return `Led by this process${leaseHolder === null ? '' : `, ${leaseHolder}`}.`;
  if (role === 'starting') return 'The leader is not known yet.';
  if (leaseHolder === null) return 'No process leads the feed.';
  // While the lease cannot be read, its holder may have lost it.
  return `${currentErrors.some(({ stage }) => stage === 'lease') ? 'Last led' : 'Led'} by ${leaseHolder}.`;
}

function freshness({ lagSeconds, initialSyncComplete }: StatusReport): string {
  if (lagSeconds === null) return 'The freshness of the data is not known yet.';
  const upTo = `The data is complete up to ${describeSeconds(lagSeconds)} ago.`;
  return initialSyncComplete ? upTo : `${upTo} The initial sync is not complete yet.`;
}

export function renderState({ headline, sentence, leader, tone, sign }: State): string {
  return `<section class="state ${tone}">
${signSvg(sign)}
<h1 aria-live="polite">${escapeHtml(headline)}</h1>
<p>${escapeHtml(sentence)}</p>
<p class="quiet">${escapeHtml(leader)}</p>
</section>`;
}

/** Returns the icon of a page as an address: its sign on a disc, so that tabs show the state. */
export function iconOf({ tone, sign }: Icon): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><circle cx="12" cy="12" r="12" fill="${TONES[tone]}"/><path d="${sign}" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

/** Renders a sign, whose size and colour are in the style sheet. */
export function signSvg(sign: string): string {
  return `<svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><circle cx="12" cy="12" r="10"/><path d="${sign}"/></svg>`;
}
