import { describeSeconds } from './html.js';
import type { StatusReport } from './status-report.js';

/** The state of the feed in a few words, as plain text. */
export interface State {
  readonly headline: string;
  readonly sentence: string;
  readonly leader: string;
  readonly tone: 'good' | 'busy' | 'bad' | 'calm';
  /** SVG path in a 24 by 24 view box, so that the state does not depend on colour alone. */
  readonly sign: string;
}

const TICK = 'M7.5 12.5l3 3 6-6.5';
const EXCLAMATION = 'M12 7v6M12 16.5v.5';
const ONWARD = 'M8 8l4 4-4 4M13 8l4 4-4 4';
const PAUSE = 'M9.5 8.5v7M14.5 8.5v7';
const DOTS = 'M7.5 12h.01M12 12h.01M16.5 12h.01';

export function stateOf(report: StatusReport): State {
  return { ...summaryOf(report), sentence: freshness(report), leader: leaderOf(report) };
}

function summaryOf({ role, caughtUp, stuckSince, currentErrors }: StatusReport): Omit<State, 'sentence' | 'leader'> {
  if (currentErrors.length > 0) return { headline: 'Failing, retrying', tone: 'bad', sign: EXCLAMATION };
  if (stuckSince !== null) return { headline: 'Stuck, retrying', tone: 'bad', sign: EXCLAMATION };
  if (role === 'starting') return { headline: 'Starting', tone: 'calm', sign: DOTS };
  if (role === 'standby') return { headline: 'Standing by', tone: 'calm', sign: PAUSE };
  return caughtUp
    ? { headline: 'Caught up', tone: 'good', sign: TICK }
    : { headline: 'Catching up', tone: 'busy', sign: ONWARD };
}

function leaderOf({ role, leaseHolder }: StatusReport): string {
  if (role === 'leader') return `Led by this process${leaseHolder === null ? '' : `, ${leaseHolder}`}.`;
  if (role === 'starting') return 'The leader is not known yet.';
  return leaseHolder === null ? 'No process leads the feed.' : `Led by ${leaseHolder}.`;
}

function freshness({ lagSeconds, backfillComplete }: StatusReport): string {
  if (lagSeconds === null) return 'The freshness of the data is not known yet.';
  const upTo = `The data is complete up to ${describeSeconds(lagSeconds)} ago.`;
  return backfillComplete ? upTo : `${upTo} The history is still being read.`;
}
