import type { Clock } from '../../core/clock.js';
import { type Answer, type Request, textAnswer } from './single-request-server.js';

/** Pause after rendering a response, as a multiple of the time that it took: clients take at most 5 % of a core with it. */
const REST_PER_RENDERING = 19;
/** Maximum pause between two responses, milliseconds: a scrape must be answered before its connection gets too old. */
const MAX_REST_MS = 2_000;
/** Maximum number of different requests that wait. */
const MAX_WAITING = 128;
const UNAVAILABLE = textAnswer(503, 'too many requests, or the server is closing; try again later');

export interface PacedRequest {
  /** Requests with the same key get the same response. */
  readonly key: string;
  readonly isWanted: Request['isWanted'];
  readonly render: () => Answer | Promise<Answer>;
}

/** Responds to a request. Rejects only if rendering does. */
export type PacedAnswers = (request: PacedRequest) => Promise<Answer>;

/** Requests with one key, which wait for their response. */
interface Waiting {
  readonly answer: Promise<Answer>;
  readonly isWanted: Request['isWanted'][];
}

/**
 * Limits the time that rendering takes, however many clients ask, since the metrics of a thousand feeds are long. Responses are rendered
 * one after the other with pauses in between, and equal requests that wait share the next one. So each response is as current as
 * if its request had been the only one.
 * Requests whose clients are gone take no turn.
 * @param signal ends the pauses; nothing is rendered after that
 */
export function createPacedAnswers(clock: Clock, signal: AbortSignal): PacedAnswers {
  const waiting = new Map<string, Waiting>();
  let rested = Promise.resolve();
  return ({ key, isWanted, render }) => {
    const joined = waiting.get(key);
    if (joined !== undefined) {
      joined.isWanted.push(isWanted);
      return joined.answer;
    }
    if (waiting.size >= MAX_WAITING) return Promise.resolve(UNAVAILABLE);
    const wanted = [isWanted];
    let restMs = 0;
    const answer = rested.then(async () => {
      waiting.delete(key);
      if (signal.aborted || !wanted.some((isStillWanted) => isStillWanted())) return UNAVAILABLE;
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
    waiting.set(key, { answer, isWanted: wanted });
    return answer;
  };
}
