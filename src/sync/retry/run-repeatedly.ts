import { classifyError } from '../../core/errors.js';
import type { LeaderContext } from '../context.js';
import type { Stage } from '../ports/index.js';
import { pauseAfter } from './backoff.js';

/**
 * Result of an iteration: the pause before the next one, milliseconds. `done` and `over` end the iterations; `done` counts as a
 * success.
 */
export type IterationEnd = { readonly pauseMs: number } | 'done' | 'over';

/**
 * Runs iterations of a stage until one returns `done` or `over`, or the signal aborts. A failed iteration is
 * reported, and the pause before the next one grows with the number of failures in a row. Never rejects.
 */
export async function runRepeatedly(
  stage: Stage,
  { clock, observer, recovery }: LeaderContext,
  signal: AbortSignal,
  iteration: () => Promise<IterationEnd>,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const end = await iteration();
      if (end === 'over' || signal.aborted) return;
      if (failures > 0) observer.recovered(stage);
      failures = 0;
      if (end === 'done') return;
      if (end.pauseMs > 0) await clock.sleep(end.pauseMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const pauseMs = pauseAfter(failures, classifyError(error), clock.random());
      observer.failed(stage, error, pauseMs);
      await recovery.pauseAfterFailure(error, pauseMs, signal);
    }
  }
}
