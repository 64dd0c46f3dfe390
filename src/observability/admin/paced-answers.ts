import type { Clock } from '../../core/clock.js';
import { type Answer, textAnswer } from './single-request-server.js';

/** How many times as long as rendering an answer takes the next one waits: clients take at most 5 % of a core with it. */
const REST_PER_RENDERING = 19;
/** Maximum pause between two answers, milliseconds: a scrape must be answered before its connection gets too old. */
const MAX_REST_MS = 2_000;
/** Maximum number of different requests that wait. */
const MAX_WAITING = 128;

/** Answers a request. Rejects only if rendering does. */
export type PacedAnswers = (request: string, render: () => Answer | Promise<Answer>) => Promise<Answer>;

/**
 * Limits the time that rendering takes, however many clients ask: with a thousand feeds the metrics take 40 ms. Answers are rendered
 * one after the other with pauses in between, and equal requests that wait share the next one. So each answer is as current as
 * if its request had been the only one.
 * @param signal ends the pauses
 */
export function createPacedAnswers(clock: Pick<Clock, 'monotonic' | 'sleep'>, signal: AbortSignal): PacedAnswers {
  const waiting = new Map<string, Promise<Answer>>();
  let rested = Promise.resolve();
  return (request, render) => {
    const joined = waiting.get(request);
    if (joined !== undefined) return joined;
    if (waiting.size >= MAX_WAITING) return Promise.resolve(textAnswer(503, 'too many requests; try again later'));
    let restMs = 0;
    const answer = rested.then(async () => {
      waiting.delete(request);
      const startedAt = clock.monotonic();
      try {
        const rendered = await render();
        return { ...rendered, body: Buffer.from(rendered.body) }; // one copy, however many clients do not read it
      } finally {
        restMs = Math.min(REST_PER_RENDERING * (clock.monotonic() - startedAt), MAX_REST_MS);
      }
    });
    const rest = () => (restMs > 0 ? clock.sleep(restMs, signal) : undefined);
    rested = answer.then(rest, rest);
    waiting.set(request, answer);
    return answer;
  };
}
