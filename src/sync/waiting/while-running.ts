import { type Clock, WAIT_OVER } from '../../core/clock.js';

/** Interval of the calls, milliseconds. */
const INTERVAL_MS = 10_000;

/** Waits for work that may take long, and calls back every 10 s until it ends. */
export async function whileRunning<T>(work: Promise<T>, callBack: () => void, clock: Clock): Promise<T> {
  const over = new AbortController();
  const repeat = async () => {
    for (;;) {
      await clock.sleep(INTERVAL_MS, over.signal);
      if (over.signal.aborted) return;
      callBack();
    }
  };
  void repeat();
  try {
    return await work;
  } finally {
    over.abort(WAIT_OVER);
  }
}
