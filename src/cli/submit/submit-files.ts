import { createHash } from 'node:crypto';
import PQueue from 'p-queue';
import type { Clock } from '../../core/clock.js';
import type { ServiceClient, SubmitResult } from '../../service/client.js';
import { ServiceError } from '../../service/errors/service-error.js';
import { ConflictError } from '../../service/errors/status-errors.js';
import type { Submission } from '../../service/wire.js';
import { CommandFailure, EXIT, explain } from '../context/exit.js';
import { type RetryOptions, withRetries } from '../context/with-retries.js';
import { SERVICE_FAILURES } from '../context/with-service.js';
import { hasChanged, type PdfFile } from './pdf-files.js';

/** The result for one file. */
export interface SubmittedFile {
  /** Path as given, or as found in a folder. */
  readonly file: string;
  /**
   * `submitted`: a new run was created. `repeated`: a run existed, from an earlier command or for the same content in this one.
   * `failed`: refused or not answered. `interrupted`: the request was in transit and may have arrived. `not_sent`.
   */
  readonly outcome: 'submitted' | 'repeated' | 'failed' | 'interrupted' | 'not_sent';
  readonly idempotencyKey: string;
  readonly scanId: string | null;
  readonly status: Submission['status'] | null;
  /** The service's address of the run, for people. */
  readonly statusUrl: string | null;
  /** Reason of a run that failed while waiting (interface 2.1). */
  readonly failureReason: string | null;
  /** The service's German message about a run that failed while waiting. */
  readonly error: string | null;
  /** Reason why the file was not submitted or its run is unknown, with the remedy. */
  readonly problem: Problem | null;
}

export interface Problem {
  /** A stable word, such as `http_400`. */
  readonly kind: string;
  readonly message: string;
  /** Whether a later attempt may succeed. */
  readonly passing: boolean;
}

export interface SubmitOptions {
  readonly client: Pick<ServiceClient, 'submit'>;
  readonly documentType: string;
  readonly environment: 'prod' | 'test';
  /** Whether to submit a file again if its run has failed. */
  readonly resubmitFailed: boolean;
  /** Maximum number of files submitted at once. */
  readonly concurrency: number;
  /** Maximum number of requests per second; null: no limit. */
  readonly perSecond: number | null;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called with each file as soon as its outcome is known. */
  readonly onFile: (submitted: SubmittedFile) => void;
  /** Called before each pause with one sentence about it. */
  readonly onPause: (message: string) => void;
}

/** Kinds of failures that would affect every file; a 404 is about the document type (interface 7). */
const COMMON_FAILURES = new Set([...SERVICE_FAILURES, 'http_404']);

/** Maximum number of failed runs of one file. */
const MAX_FAILED_RUNS = 100;

/**
 * Submits files, several at once. A failure ends the command only if it would affect every file: files that are not in
 * transit by then are not sent. Files with the same content are sent once.
 * @returns the results in the order of the files
 */
export async function submitFiles(
  files: readonly PdfFile[],
  options: SubmitOptions,
): Promise<readonly SubmittedFile[]> {
  const queue = new PQueue({ concurrency: options.concurrency });
  const send = createSender(options);
  const byContent = new Map<string, Promise<SubmittedFile>>();
  let ended = false;
  const submit = async (file: PdfFile): Promise<SubmittedFile> => {
    if (ended) return notSent(file.path, idempotencyKey(file, options));
    const submitted = await submitFile(file, options, send);
    if (submitted.problem !== null && COMMON_FAILURES.has(submitted.problem.kind)) ended = true;
    return submitted;
  };
  return Promise.all(
    files.map(async (file) => {
      const same = byContent.get(file.sha256);
      const result = same?.then((submitted) => repeatOf(submitted, file)) ?? queue.add(() => submit(file));
      if (same === undefined) byContent.set(file.sha256, result);
      const submitted = await result;
      options.onFile(submitted);
      return submitted;
    }),
  );
}

function repeatOf(submitted: SubmittedFile, { path }: PdfFile): SubmittedFile {
  const outcome = submitted.outcome === 'submitted' ? 'repeated' : submitted.outcome;
  return { ...submitted, file: path, outcome };
}

function notSent(file: string, idempotencyKey: string): SubmittedFile {
  const unknown = { scanId: null, status: null, statusUrl: null, failureReason: null, error: null, problem: null };
  return { file, outcome: 'not_sent', idempotencyKey, ...unknown };
}

type Send = <T>(request: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** Sends requests at the given rate and retries temporary failures. A `Retry-After` applies to all requests. */
function createSender({ perSecond, clock, signal, onPause }: SubmitOptions): Send {
  const rate = new PQueue(perSecond === null ? {} : { interval: 1000 / perSecond, intervalCap: 1 });
  let quietUntil = Number.NEGATIVE_INFINITY;
  const waitForTurn = async () => {
    if (clock.monotonic() < quietUntil) await clock.sleep(quietUntil - clock.monotonic(), signal);
    await rate.add(async () => {}, { signal });
    signal.throwIfAborted();
  };
  const pause: RetryOptions['onPause'] = (message, pauseMs, failure) => {
    if (failure.retryAfterMs !== undefined) quietUntil = Math.max(quietUntil, clock.monotonic() + pauseMs);
    onPause(message);
  };
  return (request) => withRetries(() => waitForTurn().then(() => request(signal)), { clock, signal, onPause: pause });
}

/**
 * Submits one file under its key. With `resubmitFailed`, further keys are tried until one has no failed run. Never rejects.
 */
async function submitFile(file: PdfFile, options: SubmitOptions, send: Send): Promise<SubmittedFile> {
  const { resubmitFailed, signal } = options;
  let key = idempotencyKey(file, options);
  let tries = 0;
  const result = (more: Partial<SubmittedFile>) => ({ ...notSent(file.path, key), ...more });
  if (signal.aborted) return result({});
  try {
    for (let runs = 1; runs <= MAX_FAILED_RUNS; runs += 1) {
      tries = 0;
      const answer = await sendFile(file, key, options, send, () => {
        tries += 1;
      }).catch((error) => {
        // After a lost answer the conflict may be with our own request, whose run must not be created twice.
        if (resubmitFailed && error instanceof ConflictError && tries === 1) return 'conflict' as const;
        throw error;
      });
      if (answer !== 'conflict' && !(resubmitFailed && isFailedRepeat(answer))) {
        const { scanId, status, statusUrl, created } = answer;
        return result({ outcome: created ? 'submitted' : 'repeated', scanId, status, statusUrl });
      }
      key = nextIdempotencyKey(key);
    }
    throw new CommandFailure(`${MAX_FAILED_RUNS} consecutive runs of this file have failed`);
  } catch (error) {
    if (signal.aborted) return result({ outcome: tries > 0 ? 'interrupted' : 'not_sent' });
    const advice = error instanceof ConflictError ? adviceOnConflict(tries) : undefined;
    return result({ outcome: 'failed', problem: problemOf(error, advice) });
  }
}

function isFailedRepeat({ created, status }: SubmitResult): boolean {
  return !created && status === 'failed';
}

/** @param onSend called before each attempt */
async function sendFile(
  file: PdfFile,
  key: string,
  { client, documentType, environment }: SubmitOptions,
  send: Send,
  onSend: () => void,
): Promise<SubmitResult> {
  const request = { file: file.content, fileName: file.name, documentType, environment, idempotencyKey: key };
  return send(async (signal) => {
    onSend();
    return client.submit(request, signal).catch(async (error) => {
      throw !signal.aborted && (await hasChanged(file)) ? new FileChanged() : error;
    });
  });
}

/**
 * Returns the Idempotency-Key (interface 4.1) of a file. It depends on content, type and environment alone, so every repeat
 * finds the existing run.
 */
function idempotencyKey(
  { sha256 }: PdfFile,
  { documentType, environment }: Pick<SubmitOptions, 'documentType' | 'environment'>,
): string {
  return keyOf([environment, documentType, sha256]);
}

/** Returns the key for another run of the same file. It depends only on the previous key, so repeats are safe as well. */
function nextIdempotencyKey(key: string): string {
  return keyOf([key]);
}

function keyOf(parts: readonly string[]): string {
  return `scanfeed-${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
}

/** The content that is sent under a key must be the content that was checked. */
class FileChanged extends CommandFailure {
  readonly kind = 'file_changed';
  constructor() {
    super('the file was changed or removed after it was checked, so it was not submitted; submit it again');
  }
}

/** No other file or environment can have the same key, so the conflict is with an earlier submission of this file. */
function adviceOnConflict(tries: number): string {
  const cause =
    tries > 1
      ? 'an earlier attempt of this command got no answer and may have created a run'
      : 'the key follows from content, document type and environment, so the document was probably submitted before, perhaps under another name';
  return `${cause}; look for its run before you use --new, which creates another`;
}

/** Describes why a request of one file failed. Rethrows errors that are bugs. */
export function problemOf(error: unknown, advice?: string): Problem {
  if (error instanceof ServiceError) {
    if (error.kind === 'timeout') advice ??= 'SCANFEED_REQUEST_TIMEOUT allows more time';
    const message = advice === undefined ? error.message : `${error.message}; ${advice}`;
    // As in every command, a maintenance page, which is not JSON, means that the service is unavailable.
    return { kind: error.kind, message, passing: explain(error).exitCode === EXIT.tryAgain };
  }
  if (!(error instanceof CommandFailure)) throw error;
  return { kind: error instanceof FileChanged ? error.kind : 'too_many_runs', message: error.message, passing: false };
}
