import { createPace, type WaitForSlot } from '../../core/pace.js';
import type { ServiceError } from '../../service/errors/service-error.js';
import { readUntilRecognized, UNKNOWN_RUN_MS } from '../../service/run-pauses.js';
import { type LimitedRun, limitConcurrency } from '../../sync/waiting/limit-concurrency.js';
import { formatSeconds } from '../terminal/format.js';
import { readState } from './read-state.js';
import { problemOf, type RequestOptions, type SubmittedFile } from './submit-files.js';

/** Minimum time between two requests, milliseconds: the interface shows no limit, and many runs would be requested at once. */
const SPACING_MS = 100;
/** Minimum pause in an outage that is reported, milliseconds. */
const REPORTED_PAUSE_MS = 5_000;

/**
 * Requests each run that is still processing, with growing pauses, until it has ended. If the signal aborts, the rest is returned as
 * it is.
 */
export async function awaitRuns(
  files: readonly SubmittedFile[],
  options: RequestOptions,
): Promise<readonly SubmittedFile[]> {
  const limited = limitConcurrency(options.concurrency);
  const onPause = onceForAll(options);
  const waitForSlot = createPace(SPACING_MS, options.clock);
  return Promise.all(
    files.map(async (file) => {
      if (!isOpen(file)) return file;
      const ended = await awaitRun(file, file.scanId as string, { ...options, onPause, waitForSlot }, limited);
      if (!options.signal.aborted) options.onFile(ended);
      return ended;
    }),
  );
}

export function isOpen({ scanId, status, problem }: SubmittedFile): boolean {
  return scanId !== null && (status === 'processing' || status === null) && problem === null;
}

interface AwaitOptions extends Pick<RequestOptions, 'service' | 'clock' | 'signal'> {
  readonly onPause: (error: ServiceError, pauseMs: number) => void;
  readonly waitForSlot: WaitForSlot;
}

async function awaitRun(
  file: SubmittedFile,
  scanId: string,
  { service, clock, signal, onPause, waitForSlot }: AwaitOptions,
  limited: LimitedRun,
): Promise<SubmittedFile> {
  try {
    const state = await readUntilRecognized(
      () => limited(() => waitForSlot({ signal }).then(() => readState(service, scanId, signal)), { signal }),
      async (pauseMs, failure) => {
        if (failure !== null) onPause(failure, pauseMs);
        await clock.sleep(pauseMs, signal);
      },
    );
    return { ...file, ...state };
  } catch (error) {
    return signal.aborted ? file : { ...file, problem: problemOf(error) };
  }
}

/**
 * Reports a pause that the service asks for once, not for each run that it delays, and an outage at its first long pause and every
 * two minutes.
 */
function onceForAll({ clock, onPause }: RequestOptions): AwaitOptions['onPause'] {
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let outageUntil = Number.NEGATIVE_INFINITY;
  return ({ message, retryAfterMs = 0 }, pauseMs) => {
    const now = clock.monotonic();
    const isAskedFor = retryAfterMs > 0;
    if (isAskedFor ? now < pausedUntil : pauseMs < REPORTED_PAUSE_MS || now < outageUntil) return;
    if (isAskedFor) pausedUntil = now + pauseMs;
    else outageUntil = now + UNKNOWN_RUN_MS;
    onPause(`${message}; retrying in ${formatSeconds(pauseMs / 1000)}`);
  };
}
