import PQueue from 'p-queue';
import { WrongShapeError } from '../../service/body-errors.js';
import type { RecognitionClient } from '../../service/client.js';
import { ServiceError } from '../../service/service-error.js';
import { misfit, runSchema } from '../../service/wire.js';
import { humanSeconds } from '../human.js';
import type { RequestPace } from './patient-requests.js';
import type { SubmittedFile } from './submission.js';
import { problemOf } from './submit-file.js';

/** Pauses between looks, milliseconds: doubling. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 10_000;
/** From one request to the next. */
const SPACING_MS = 100;
/** Looks at one run that failed in a row before it is given up: some two minutes. */
const TRIES = 15;
/** A pause after a failure that is not told: it is over before it is read. */
const SHORT_PAUSE_MS = 5_000;

export interface AwaitParts extends Omit<RequestPace, 'onPause'> {
  readonly client: Pick<RecognitionClient, 'readRun'>;
  /** Requests at once. */
  readonly concurrency: number;
  /** Told of each file whose run is over, or given up. */
  readonly onFile: (submitted: SubmittedFile) => void;
  /** Told how many runs are still processing. */
  readonly onLook: (open: number) => void;
  /** Told in one line of a long pause after a failure: each that the service asks for, and the first of an outage. */
  readonly onPause: (said: string) => void;
}

/** What a look at a run found; null: it is still processing, or cannot be told at this moment. */
type Found = Pick<SubmittedFile, 'status' | 'failureReason' | 'error'> | Pick<SubmittedFile, 'problem'> | null;

/**
 * Looks at the runs that are still processing, at all of them in turn, with growing pauses, until none is left. When the
 * signal aborts, the rest is given back as it is.
 */
export async function awaitRuns(files: readonly SubmittedFile[], parts: AwaitParts): Promise<readonly SubmittedFile[]> {
  const { clock, signal, concurrency, perSecond } = parts;
  const queue = new PQueue({ concurrency, interval: Math.max(SPACING_MS, 1000 / (perSecond ?? 1000)), intervalCap: 1 });
  const looks = createLooks(parts);
  let now = files;
  let toldAway = false;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    const open = new Set(now.filter(isOpen).map(({ scanId }) => scanId as string));
    if (open.size === 0 || signal.aborted) return now;
    parts.onLook(open.size);
    const failure = looks.lastFailure();
    const waitMs = Math.max(pauseMs, failure?.retryAfterMs ?? 0);
    if (failure === null) toldAway = false;
    else if (waitMs >= SHORT_PAUSE_MS && (waitMs > pauseMs || !toldAway)) {
      toldAway = true;
      parts.onPause(`${failure.message}; trying again in ${humanSeconds(waitMs / 1000)}`);
    }
    await clock.sleep(waitMs, signal);
    const settle = (scanId: string, found: Found) => {
      if (found === null) return;
      now = now.map((file) => (file.scanId === scanId && isOpen(file) ? { ...file, ...found } : file));
      for (const file of now) if (file.scanId === scanId) parts.onFile(file);
    };
    const look = async (scanId: string) => settle(scanId, await looks.at(scanId));
    // What waits for its turn is rejected when the signal aborts.
    await Promise.all([...open].map((scanId) => queue.add(() => look(scanId), { signal }).catch(ignoreAbort(signal))));
  }
}

function isOpen({ scanId, status, problem }: SubmittedFile): boolean {
  return scanId !== null && status === 'processing' && problem === null;
}

function ignoreAbort(signal: AbortSignal) {
  return (error: unknown) => {
    if (!signal.aborted) throw error;
  };
}

/** The steering fields of a run; its data is not looked at, whatever it is. */
const stateSchema = runSchema.pick({ status: true, failureReason: true, error: true });

/** Looks at runs, and remembers which failed and how long the service asked to be left alone. */
function createLooks({ client, signal }: Pick<AwaitParts, 'client' | 'signal'>) {
  const failures = new Map<string, number>();
  let last: ServiceError | null = null;
  const read = async (scanId: string): Promise<Found> => {
    const { run } = await client.readRun(scanId, { markdown: false }, signal);
    const { data, error } = stateSchema.safeParse(run);
    if (error !== undefined) throw new WrongShapeError(200, 'the run', misfit(error).fields);
    if (data.status === 'processing') return null;
    return { status: data.status, failureReason: data.failureReason ?? null, error: data.error ?? null };
  };
  return {
    /** That will be tried again, since this was last asked; of several the one with the longest `Retry-After`. */
    lastFailure: (): ServiceError | null => {
      const failure = last;
      last = null;
      return failure;
    },
    at: async (scanId: string): Promise<Found> => {
      try {
        const found = await read(scanId);
        failures.delete(scanId);
        return found;
      } catch (error) {
        if (signal.aborted) return null;
        if (!(error instanceof ServiceError)) throw error;
        const failed = (failures.get(scanId) ?? 0) + 1;
        failures.set(scanId, failed);
        // Also of one that is given up: the pause that it asks for is for all.
        if (error.action === 'retry' && (error.retryAfterMs ?? 0) >= (last?.retryAfterMs ?? 0)) last = error;
        return error.action !== 'retry' || failed >= TRIES ? { problem: problemOf(error) } : null;
      }
    },
  };
}
