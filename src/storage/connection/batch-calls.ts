import type { Clock } from '../../core/clock.js';

/** The time that calls wait for others, so that one statement answers them together. */
export interface Batching {
  /** Milliseconds; 0: each call is answered on its own, at once. */
  readonly waitMs: () => number;
  readonly sleep: Clock['sleep'];
}

const AT_ONCE: Batching = { waitMs: () => 0, sleep: async () => {} };

/**
 * Returns a function whose calls within a short time are answered together.
 * @param answerAll returns the responses in the order of the calls; if it rejects, so does each call. A response can be a promise, for
 *   which only its own call waits
 * @param batching by default no call waits
 */
export function batchCalls<Call, Answer>(
  answerAll: (calls: readonly [Call, ...Call[]]) => Promise<readonly (Answer | Promise<Answer>)[]>,
  { waitMs, sleep }: Batching = AT_ONCE,
): (call: Call) => Promise<Answer> {
  let waiting: {
    readonly calls: [Call, ...Call[]];
    readonly answers: Promise<readonly (Answer | Promise<Answer>)[]>;
  } | null = null;
  const begin = (ms: number, first: Call) => {
    const calls: [Call, ...Call[]] = [first];
    const answers = sleep(ms, NEVER).then(() => {
      waiting = null;
      return answerAll(calls);
    });
    return { calls, answers };
  };
  return async (call) => {
    const ms = waitMs();
    if (ms === 0) return (await answerAll([call]))[0] as Answer;
    const index = waiting === null ? 0 : waiting.calls.push(call) - 1;
    waiting ??= begin(ms, call);
    return (await waiting.answers)[index] as Answer;
  };
}

/** The wait is short, and the calls have no signal. */
const NEVER = new AbortController().signal;
