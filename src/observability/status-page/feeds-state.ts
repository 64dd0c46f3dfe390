import type { Totals } from './feed-list.js';
import { counted, describeSeconds, grouped } from './html.js';
import { alarm, CATCHING_UP, CAUGHT_UP, SEVERITY, STANDING_BY, STARTING, type State, type Summary } from './state.js';

/** Returns the state of all feeds of a process. */
export function stateOfAll(totals: Totals): State {
  return {
    ...summaryOfAll(totals),
    sentence: freshnessOfAll(totals),
    leader: `This process leads ${grouped(totals.leading)} of ${counted(totals.feeds, 'feed')}.`,
  };
}

function summaryOfAll({ feeds, needAttention, needAction, starting, leading, caughtUp }: Totals): Summary {
  if (needAction > 0) return alarm(SEVERITY.held, `Action required for ${counted(needAction, 'feed')}`);
  if (needAttention > 0) {
    const verb = needAttention === 1 ? 'needs' : 'need';
    return alarm(SEVERITY.failing, `${counted(needAttention, 'feed')} ${verb} attention`);
  }
  if (feeds === 0) return { ...STARTING, headline: 'No feeds' };
  if (starting > 0) return STARTING;
  if (leading === 0) return STANDING_BY;
  return caughtUp === leading ? CAUGHT_UP : CATCHING_UP;
}

function freshnessOfAll({ feeds, withUnknownLag, worst }: Totals): string {
  if (feeds === 0) return 'The feeds file lists none.';
  if (worst === null) return 'The freshness of the data is not known.';
  const upTo = `is complete up to ${describeSeconds(worst.lagSeconds)} ago`;
  if (withUnknownLag === 0) return `The data of every feed ${upTo}.`;
  return `The freshness of ${counted(withUnknownLag, 'feed')} is not known. The data of the others ${upTo}.`;
}
