import type { Clock } from '../../core/clock.js';

/** How long calls wait for others that are answered by the same statement. */
export interface Gathering {
  /** Milliseconds; 0: each call is answered on its own, at once. */
  readonly waitMs: () => number;
  readonly sleep: Clock['sleep'];
}

const AT_ONCE: Gathering = { waitMs: () => 0, sleep: async () => {} };

/**
 * Returns a function whose calls within a short time are answered together.
 * @param answerAll returns the answers in the order of the calls; if it rejects, each of the calls does. An answer may be a promise,
 *   which only its call waits for
 * @param gathering by default no call waits
 */
export function gatherCalls<Call, Answer>(
  answerAll: (calls: readonly Call[]) => Promise<readonly (Answer | Promise<Answer>)[]>,
  { waitMs, sleep }: Gathering = AT_ONCE,
): (call: Call) => Promise<Answer> {
  let waiting: { readonly calls: Call[]; readonly answers: Promise<readonly (Answer | Promise<Answer>)[]> } | null =
    null;
  const begin = (ms: number) => {
    const calls: Call[] = [];
    const answers = sleep(ms, NEVER).then(() => {
      waiting = null;
      return answerAll(calls);
    });
    return { calls, answers };
  };
  return async (call) => {
    const ms = waitMs();
    if (ms === 0) return (await answerAll([call]))[0] as Answer;
    waiting ??= begin(ms);
    const { calls, answers } = waiting;
    const index = calls.push(call) - 1;
    return (await answers)[index] as Answer;
  };
}

/** The wait is short, and the calls have no signal. */
const NEVER = new AbortController().signal;
