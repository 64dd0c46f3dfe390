import { troubleOf } from '../outcome/trouble.js';
import { pauseAfter } from './backoff.js';
import type { LeaderContext } from './context.js';
import type { Stage } from './ports.js';

/** What follows a turn: the next one, after a pause in milliseconds; or none. */
export type TurnEnd = { readonly pauseMs: number } | 'over';

/**
 * Takes the turns of a stage one after the other, until one says that it is over or the signal aborts. One that fails is
 * told of, and the next is taken after a pause that grows with the failures in a row. Never rejects.
 */
export async function takeTurns(
  stage: Stage,
  { clock, observer, waitOut }: Pick<LeaderContext, 'clock' | 'observer' | 'waitOut'>,
  signal: AbortSignal,
  turn: () => Promise<TurnEnd>,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const end = await turn();
      if (end === 'over') return;
      if (failures > 0) observer.recovered(stage, failures);
      failures = 0;
      if (end.pauseMs > 0) await clock.sleep(end.pauseMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const pauseMs = pauseAfter(failures, troubleOf(error), clock.random());
      observer.failed(stage, error, failures, pauseMs);
      await waitOut(error, pauseMs, signal);
    }
  }
}
