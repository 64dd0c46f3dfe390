import { createHash } from 'node:crypto';
import type { Clock } from '../../core/clock.js';
import { createPace } from '../../core/pace.js';
import type { ServiceClient, SubmitResult } from '../../service/client.js';
import { ServiceError } from '../../service/errors/service-error.js';
import type { Submission } from '../../service/wire.js';
import type { FeedService } from '../../sync/ports/index.js';
import { limitConcurrency } from '../../sync/waiting/limit-concurrency.js';
import { CommandFailure, EXIT, explain } from '../context/exit.js';
import { type RetryOptions, withRetries } from '../context/with-retries.js';
import { SERVICE_FAILURES } from '../context/with-service.js';
import { hasChanged, type PdfFile } from './pdf-files.js';
import { readState } from './read-state.js';

export interface SubmittedFile {
  /** Path as given, or as found in a folder. */
  readonly file: string;
  /**
   * `submitted`: a new run was created. `repeated`: a run existed, from an earlier command or for the same content in this one.
   * `failed`: refused or not answered. `unknown`: the request may have been accepted, but its response is lost or unusable.
   * `interrupted`: the request was in transit and may have arrived. `not_sent`.
   */
  readonly outcome: 'submitted' | 'repeated' | 'failed' | 'unknown' | 'interrupted' | 'not_sent';
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

/** How to send requests about files. */
export interface RequestOptions {
  /** Reads runs at the rate of the settings, and not before the time that the service asked for. */
  readonly service: FeedService;
  readonly concurrency: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called with the result of each file. */
  readonly onFile: (submitted: SubmittedFile) => void;
  /** Called with one sentence about a pause. */
  readonly onPause: (message: string) => void;
}

export interface SubmitOptions extends RequestOptions {
  readonly client: ServiceClient;
  /** Maximum number of submissions per second; null: no limit. */
  readonly perSecond: number | null;
  readonly documentType: string;
  readonly environment: 'prod' | 'test';
  readonly resubmitFailed: boolean;
}

/** Kinds of failures that would affect every file; a 404 is about the document type (interface 7). */
const COMMON_FAILURES = new Set([...SERVICE_FAILURES, 'http_404']);

/** Statuses that concern one file: its content, its size, its type, or its key. */
const ABOUT_ONE_FILE = new Set(['http_400', 'http_409', 'http_413', 'http_415']);

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
  const limited = limitConcurrency(options.concurrency);
  const send = createSender(options);
  const byContent = new Map<string, Promise<SubmittedFile>>();
  let ended = false;
  let previous: string | undefined;
  const submit = async (file: PdfFile): Promise<SubmittedFile> => {
    if (ended) return notSent(file.path, idempotencyKey(file, options));
    const submitted = await submitFile(file, options, send);
    const kind = submitted.problem?.kind;
    if (kind !== undefined && (COMMON_FAILURES.has(kind) || (kind === previous && mayBeCommon(kind, options))))
      ended = true;
    previous = kind;
    return submitted;
  };
  return Promise.all(
    files.map(async (file) => {
      const same = byContent.get(file.sha256);
      const result = same?.then((submitted) => repeatOf(submitted, file)) ?? limited(() => submit(file));
      if (same === undefined) byContent.set(file.sha256, result);
      const submitted = await result;
      options.onFile(submitted);
      return submitted;
    }),
  );
}

/**
 * Returns whether a refusal may be about the document type. The interface does not show the status for a missing schema
 * (interface 7), so two files in a row that get the same status are taken for it. With `--new`, a 409 remains only after two keys.
 */
function mayBeCommon(kind: string, { resubmitFailed }: SubmitOptions): boolean {
  return /^http_4/.test(kind) && (!ABOUT_ONE_FILE.has(kind) || (kind === 'http_409' && resubmitFailed));
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
  const waitForSlot = createPace(perSecond === null ? 0 : 1000 / perSecond, clock);
  let quietUntil = Number.NEGATIVE_INFINITY;
  const waitForTurn = async () => {
    if (clock.monotonic() < quietUntil) await clock.sleep(quietUntil - clock.monotonic(), signal);
    await waitForSlot({ signal });
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
  let attempts: Attempts = { sent: 0, mayBeAccepted: false };
  let conflicts = 0;
  const result = (more: Partial<SubmittedFile>) => ({ ...notSent(file.path, key), ...more });
  if (signal.aborted) return result({});
  try {
    for (let runs = 1; runs <= MAX_FAILED_RUNS; runs += 1) {
      attempts = { sent: 0, mayBeAccepted: false };
      const answer = await sendFile(file, key, options, send, attempts).catch((error) => {
        if (!isConflict(error)) throw error;
        conflicts += 1;
        // After a lost response the conflict may be with our own request, whose run must not be created twice.
        if (!resubmitFailed || attempts.sent > 1 || conflicts > 1) throw error;
        return 'conflict' as const;
      });
      if (answer !== 'conflict' && !(resubmitFailed && (await isFailedRepeat(answer, options)))) {
        const { scanId, status, statusUrl, created } = answer;
        return result({ outcome: created ? 'submitted' : 'repeated', scanId, status, statusUrl });
      }
      if (answer !== 'conflict') conflicts = 0;
      key = nextIdempotencyKey(key);
    }
    throw new CommandFailure(`${MAX_FAILED_RUNS} consecutive runs of this file have failed`);
  } catch (error) {
    if (signal.aborted) return result({ outcome: attempts.sent > 0 ? 'interrupted' : 'not_sent' });
    const outcome = attempts.mayBeAccepted ? 'unknown' : 'failed';
    return result({ outcome, problem: problemOf(error, adviceOn(error, attempts, conflicts)) });
  }
}

/** A repeat that does not state its status is asked for it. */
async function isFailedRepeat(answer: SubmitResult, { service, signal }: SubmitOptions): Promise<boolean> {
  if (answer.created) return false;
  if (answer.status !== null) return answer.status === 'failed';
  return (await readState(service, answer.scanId, signal))?.status === 'failed';
}

interface Attempts {
  sent: number;
  /** Whether one of them may have created a run although it failed. */
  mayBeAccepted: boolean;
}

async function sendFile(
  file: PdfFile,
  key: string,
  { client, documentType, environment }: SubmitOptions,
  send: Send,
  attempts: Attempts,
): Promise<SubmitResult> {
  const request = { file: file.content, fileName: file.name, documentType, environment, idempotencyKey: key };
  return send(async (signal) => {
    attempts.sent += 1;
    return client.submit({ ...request, signal }).catch(async (error) => {
      if (mayBeAccepted(error)) attempts.mayBeAccepted = true;
      throw !signal.aborted && (await hasChanged(file)) ? new FileChanged() : error;
    });
  });
}

/** Codes of connections that were never made. */
const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/**
 * Returns whether the file may have a run although the request failed. A success may have been sent for a run, whatever is
 * wrong with the rest of the response; a 503 is sent before the work begins.
 */
function mayBeAccepted(error: unknown): boolean {
  if (!(error instanceof ServiceError)) return false;
  const { kind, code = '', status } = error;
  if (kind === 'connection') return !NOT_CONNECTED.has(code);
  if (['timeout', 'bad_http', 'too_large'].includes(kind)) return true;
  return status !== undefined && (status < 300 || (status >= 500 && status !== 503));
}

/**
 * Returns the Idempotency-Key (interface 4.1) of a file. It depends on content, type and environment alone, so every repeat
 * finds the existing run.
 */
function idempotencyKey({ sha256 }: PdfFile, { documentType, environment }: SubmitOptions): string {
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

function adviceOn(error: unknown, { sent, mayBeAccepted }: Attempts, conflicts: number): string | undefined {
  if (isConflict(error)) return `${causeOfConflict(sent, conflicts)}. ${FIND_FIRST}`;
  return mayBeAccepted ? 'repeat the command, which finds the run if there is one' : undefined;
}

function isConflict(error: unknown): boolean {
  return error instanceof ServiceError && error.status === 409;
}

const FIND_FIRST = 'Look for its run first: --new creates another run';

/** No other file or environment can have the same key, so a conflict is with an earlier submission of this file, or not about the key. */
function causeOfConflict(sent: number, conflicts: number): string {
  if (conflicts > 1)
    return 'two Idempotency-Keys were refused: perhaps the document type has no ready schema in this environment, or the document was submitted twice under another file name';
  return sent > 1
    ? 'an earlier attempt of this command got no response and may have created a run'
    : 'probably this document was submitted before, perhaps under another file name, or the document type has no ready schema in this environment';
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
