import type { ServiceError } from '../../service/errors/service-error.js';
import { readUntilRecognized } from '../../service/run-pauses.js';
import { type LimitedRun, limitConcurrency } from '../../sync/waiting/limit-concurrency.js';
import { formatSeconds } from '../terminal/format.js';
import { readState } from './read-state.js';
import { problemOf, type RequestOptions, type SubmittedFile } from './submit-files.js';

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
  return Promise.all(
    files.map(async (file) => {
      if (!isOpen(file)) return file;
      const ended = await awaitRun(file, file.scanId as string, { ...options, onPause }, limited);
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
}

async function awaitRun(
  file: SubmittedFile,
  scanId: string,
  { service, clock, signal, onPause }: AwaitOptions,
  limited: LimitedRun,
): Promise<SubmittedFile> {
  try {
    const state = await readUntilRecognized(
      () => limited(() => readState(service, scanId, signal), { signal }),
      async (pauseMs, failure) => {
        if (failure?.retryAfterMs) onPause(failure, pauseMs);
        await clock.sleep(pauseMs, signal);
      },
    );
    return { ...file, ...state };
  } catch (error) {
    return signal.aborted ? file : { ...file, problem: problemOf(error) };
  }
}

/** Reports a pause that the service asks for once, not for each run that it delays. */
function onceForAll({ clock, onPause }: RequestOptions): AwaitOptions['onPause'] {
  let reportedUntil = Number.NEGATIVE_INFINITY;
  return ({ message }, pauseMs) => {
    if (clock.monotonic() < reportedUntil) return;
    reportedUntil = clock.monotonic() + pauseMs;
    onPause(`${message}; retrying in ${formatSeconds(pauseMs / 1000)}`);
  };
}
