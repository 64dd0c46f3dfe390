import { createPace } from '../../core/pace.js';
import { ServiceError } from '../../service/errors/service-error.js';
import { FIRST_RUN_PAUSE_MS, isWaitedOut, nextRunPause, RUN_TRIES } from '../../service/run-pauses.js';
import { limitConcurrency } from '../../sync/waiting/limit-concurrency.js';
import { formatSeconds } from '../terminal/format.js';
import { type RunState, readState } from './read-state.js';
import { type Problem, problemOf, type RequestOptions, type SubmittedFile } from './submit-files.js';

/** Minimum time between two requests, milliseconds. */
const SPACING_MS = 100;
/** Minimum length of a pause that is reported, milliseconds. */
const REPORTED_PAUSE_MS = 5_000;

export interface AwaitOptions extends RequestOptions {
  /** Called before each round with the number of runs that are still processing. */
  readonly onRound: (open: number) => void;
}

/** The change that a request found. */
type Update = RunState | { readonly problem: Problem };

/**
 * Requests the runs that are still processing in rounds, with growing pauses, until none is left. If the signal aborts, the
 * rest is returned as it is.
 */
export async function awaitRuns(
  files: readonly SubmittedFile[],
  options: AwaitOptions,
): Promise<readonly SubmittedFile[]> {
  const { clock, signal, onFile, onRound } = options;
  const pollAll = createPoller(options);
  const reportOutage = createOutageReporter(options.onPause);
  let current = files;
  let outage: ServiceError | null = null;
  const update = (scanId: string, change: Update) => {
    current = current.map((file) => (file.scanId === scanId && isOpen(file) ? { ...file, ...change } : file));
    for (const file of current) if (file.scanId === scanId) onFile(file);
  };
  for (let pauseMs = FIRST_RUN_PAUSE_MS; ; pauseMs = nextRunPause(pauseMs)) {
    const open = new Set(current.filter(isOpen).map(({ scanId }) => scanId as string));
    if (open.size === 0 || signal.aborted) return current;
    onRound(open.size);
    const waitMs = Math.max(pauseMs, outage?.retryAfterMs ?? 0);
    reportOutage(outage, waitMs, waitMs > pauseMs);
    await clock.sleep(waitMs, signal);
    outage = await pollAll([...open], update);
  }
}

export function isOpen({ scanId, status, problem }: SubmittedFile): boolean {
  return scanId !== null && (status === 'processing' || status === null) && problem === null;
}

/** Reports an outage once, unless the service asks for a pause: each of those is reported. */
function createOutageReporter(onPause: AwaitOptions['onPause']) {
  let isReported = false;
  return (outage: ServiceError | null, waitMs: number, isAskedFor: boolean): void => {
    if (outage === null) isReported = false;
    else if (waitMs >= REPORTED_PAUSE_MS && (isAskedFor || !isReported)) {
      isReported = true;
      onPause(`${outage.message}; retrying in ${formatSeconds(waitMs / 1000)}`);
    }
  };
}

/** Requests each run once and returns the failure after which the next round should pause. Counts the failures of each run. */
function createPoller({ client, clock, signal, concurrency, perSecond }: AwaitOptions) {
  const limited = limitConcurrency(concurrency);
  const waitForSlot = createPace(Math.max(SPACING_MS, 1000 / (perSecond ?? 1000)), clock);
  const failures = new Map<string, number>();
  const poll = async (scanId: string, update: (scanId: string, change: Update) => void) => {
    try {
      await waitForSlot({ signal });
      const change = await readState(client, scanId, signal);
      failures.delete(scanId);
      if (change !== null) update(scanId, change);
      return null;
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof ServiceError)) throw error;
      const failed = (failures.get(scanId) ?? 0) + 1;
      failures.set(scanId, failed);
      if (!isWaitedOut(error) || failed >= RUN_TRIES) update(scanId, { problem: problemOf(error) });
      return isWaitedOut(error) ? error : null;
    }
  };
  return async (scanIds: readonly string[], update: (scanId: string, change: Update) => void) => {
    return longestOf(await Promise.all(scanIds.map((scanId) => limited(() => poll(scanId, update)))));
  };
}

/** Returns the failure with the longest `Retry-After`, which holds for all runs. */
function longestOf(failures: readonly (ServiceError | null)[]): ServiceError | null {
  return failures.reduce(
    (longest, failure) =>
      failure !== null && (failure.retryAfterMs ?? 0) >= (longest?.retryAfterMs ?? 0) ? failure : longest,
    null,
  );
}
