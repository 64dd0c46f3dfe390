import { type Clock, WAIT_OVER } from './clock.js';
import { WaitingLine, type WaitOptions } from './waiting-line.js';

/** Maximum delay of a timer that the next slot makes up for, milliseconds. */
const TIMER_DELAY_MS = 2;

/** Resolves when it is the turn of the caller. Rejects with the reason of the signal if it aborts before. */
export type WaitForSlot = (options: WaitOptions & { readonly signal: AbortSignal }) => Promise<void>;

/**
 * Spaces callers evenly.
 * @param intervalMs time between two of them, milliseconds; 0: none waits
 * @param preferred returns the priority that goes first this time; by default the highest does
 */
export function createPace(
  intervalMs: number,
  clock: Clock,
  preferred: () => number | undefined = () => undefined,
): WaitForSlot {
  const line = new WaitingLine();
  let nextAt = Number.NEGATIVE_INFINITY;
  let sleeping: AbortController | null = null;
  const admitAll = async () => {
    while (!line.isEmpty) {
      const now = clock.monotonic();
      if (now >= nextAt) {
        nextAt = (now - nextAt > TIMER_DELAY_MS ? now : nextAt) + intervalMs;
        line.admitNext(preferred());
      } else {
        sleeping = new AbortController();
        await clock.sleep(nextAt - now, sleeping.signal);
        sleeping = null;
      }
    }
  };
  return async (options) => {
    const turn = line.wait(options);
    if (sleeping === null) void admitAll();
    try {
      await turn;
    } finally {
      if (line.isEmpty) sleeping?.abort(WAIT_OVER);
    }
  };
}
