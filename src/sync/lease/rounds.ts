import { type Clock, WAIT_OVER } from '../../core/clock.js';
import { classifyError } from '../../core/errors.js';
import { pauseAfter, pauseUntilPoll } from '../retry/backoff.js';

/** Answers the requests of many feeds together: those that wait when a round begins share one call. */
export interface Rounds<Request, Answer> {
  /**
   * Waits for the answer of the next round. Resolves with null when the signal aborts; rejects only because of a bug.
   * @param immediately whether the next round begins immediately, unless the last one failed
   */
  next(request: Request, signal: AbortSignal, immediately?: boolean): Promise<RoundAnswer<Answer> | null>;
}

export type RoundAnswer<Answer> =
  /** `askedAt`: monotonic time at which the round began. */
  | { readonly askedAt: number; readonly answer: Answer }
  /** `pauseMs`: until the next round, milliseconds. */
  | { readonly error: unknown; readonly pauseMs: number };

export interface RoundsOptions<Request, Answer> {
  readonly clock: Clock;
  /** Time between the starts of two rounds, milliseconds. */
  readonly intervalMs: number;
  /** Whether the pauses after failed rounds grow; otherwise they are as long as the interval. */
  readonly backsOff: boolean;
  /** Answers the requests in their order. The signal aborts when no request waits any longer. */
  ask(requests: readonly Request[], signal: AbortSignal): Promise<readonly Answer[]>;
}

interface Waiting<Request, Answer> {
  readonly request: Request;
  settle(answer: RoundAnswer<Answer>): void;
  fail(bug: unknown): void;
}

export function createRounds<Request, Answer>(options: RoundsOptions<Request, Answer>): Rounds<Request, Answer> {
  const { clock, intervalMs, backsOff, ask } = options;
  const waiting = new Set<Waiting<Request, Answer>>();
  /** Requests of the current round. */
  const asked = new Set<Waiting<Request, Answer>>();
  let nextAt = Number.NEGATIVE_INFINITY;
  let isUrgent = false;
  let isRunning = false;
  let failures = 0;
  let pause = new AbortController();
  let round = new AbortController();

  const untilNext = () => (isUrgent ? 0 : Math.max(0, nextAt - clock.monotonic()));
  const runRound = async () => {
    const askedAt = clock.monotonic();
    const all = [...waiting];
    for (const waiter of all) asked.add(waiter);
    waiting.clear();
    isUrgent = false;
    round = new AbortController();
    const schedule = (pauseMs: number) => {
      asked.clear();
      nextAt = clock.monotonic() + pauseMs;
      return pauseMs;
    };
    const intervalLeft = () => pauseUntilPoll(intervalMs, clock.monotonic() - askedAt);
    try {
      const requests = all.map(({ request }) => request);
      const answers = await ask(requests, round.signal);
      failures = 0;
      schedule(intervalLeft());
      for (const [index, { settle }] of all.entries()) settle({ askedAt, answer: answers[index] as Answer });
    } catch (error) {
      failures += 1;
      const pauseMs = schedule(backsOff ? pauseAfter(failures, classifyError(error), clock.random()) : intervalLeft());
      for (const { settle } of all) settle({ error, pauseMs });
    }
  };
  /** Runs rounds until nobody waits. */
  const run = async () => {
    isRunning = true;
    while (waiting.size > 0) {
      pause = new AbortController();
      // Yields even if the round is already due, so that requests made at the same time share it.
      await clock.sleep(untilNext(), pause.signal);
      if (waiting.size > 0 && untilNext() === 0) await runRound();
    }
    isRunning = false;
    isUrgent = false;
  };
  const wait = (waiter: Waiting<Request, Answer>, immediately: boolean) => {
    waiting.add(waiter);
    if (!isRunning && untilNext() === 0) nextAt = clock.monotonic() + intervalMs;
    if (immediately && failures === 0) {
      isUrgent = true;
      pause.abort(WAIT_OVER);
    }
    if (!isRunning) run().catch(failAll);
  };
  const failAll = (bug: unknown) => {
    isRunning = false;
    for (const { fail } of [...asked, ...waiting]) fail(bug);
  };
  const leave = (waiter: Waiting<Request, Answer>) => {
    waiting.delete(waiter);
    if (waiting.size === 0) pause.abort(WAIT_OVER);
    if (asked.delete(waiter) && asked.size === 0) round.abort(WAIT_OVER);
  };

  return {
    next: (request, signal, immediately = false) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return resolve(null);
        const aborted = () => {
          leave(waiter);
          resolve(null);
        };
        const waiter: Waiting<Request, Answer> = {
          request,
          settle: (answer) => {
            signal.removeEventListener('abort', aborted);
            resolve(answer);
          },
          fail: reject,
        };
        signal.addEventListener('abort', aborted, { once: true });
        wait(waiter, immediately);
      }),
  };
}
