import type { RecognitionClient, SubmitResult } from '../../service/client.js';
import { ServiceError } from '../../service/service-error.js';
import { ConflictError } from '../../service/status-errors.js';
import { CommandFailure, EXIT, explain } from '../exit.js';
import { idempotencyKey, nextIdempotencyKey } from './idempotency-key.js';
import type { PatientRequests } from './patient-requests.js';
import { hasChanged, type PdfFile } from './pdf-files.js';
import { nothingSent, type Problem, type SubmittedFile } from './submission.js';

export interface SubmitWish {
  readonly documentType: string;
  readonly environment: 'prod' | 'test';
  /** Where the run that exists has failed for good, make another. */
  readonly anew: boolean;
}

export interface SubmitParts {
  readonly client: Pick<RecognitionClient, 'submit'>;
  readonly requests: PatientRequests;
  readonly signal: AbortSignal;
}

/** Runs of one file that failed one after the other; more is no accident. */
const MOST_RUNS = 100;

/**
 * Submits one file: under the key that follows from it, or, where another run is wanted than those that failed, under the
 * first of the keys that follow from that one whose run has not failed. Never rejects.
 */
export async function submitFile(file: PdfFile, wish: SubmitWish, parts: SubmitParts): Promise<SubmittedFile> {
  let key = idempotencyKey({ ...wish, sha256: file.sha256 });
  let tries = 0;
  const ended = (more: Partial<SubmittedFile>) => ({ ...nothingSent(file.path, key), ...more });
  if (parts.signal.aborted) return ended({});
  try {
    for (let runs = 1; ; runs += 1) {
      tries = 0;
      const answer = await submitUnder(key, file, wish, parts, () => {
        tries += 1;
      }).catch((error) => {
        // After a lost answer the conflict may be with our own request, whose run must not be made twice.
        if (wish.anew && error instanceof ConflictError && tries === 1) return 'conflict' as const;
        throw error;
      });
      if (answer !== 'conflict' && !(wish.anew && isFailedRepeat(answer))) {
        const { scanId, status, statusUrl, created } = answer;
        return ended({ outcome: created ? 'submitted' : 'repeated', scanId, status, statusUrl });
      }
      if (runs === MOST_RUNS)
        throw new CommandFailure(`${MOST_RUNS} runs of this file have failed one after the other`);
      key = nextIdempotencyKey(key);
    }
  } catch (error) {
    if (parts.signal.aborted) return ended({ outcome: tries > 0 ? 'interrupted' : 'not_sent' });
    const conflict = error instanceof ConflictError;
    return ended({ outcome: 'failed', problem: problemOf(error, conflict ? adviceOnConflict(tries) : undefined) });
  }
}

function isFailedRepeat({ created, status }: SubmitResult): boolean {
  return !created && status === 'failed';
}

/** Sends the file under this key, several times if need be. */
async function submitUnder(
  key: string,
  file: PdfFile,
  { documentType, environment }: SubmitWish,
  { client, requests }: SubmitParts,
  onSent: () => void,
): Promise<SubmitResult> {
  const request = { file: file.content, fileName: file.name, documentType, environment, idempotencyKey: key };
  return requests(async (signal) => {
    onSent();
    return client.submit(request, signal).catch(async (error) => {
      throw !signal.aborted && (await hasChanged(file)) ? new FileChanged() : error;
    });
  });
}

/** A key belongs to one content: what was checked is not what would be sent. */
class FileChanged extends CommandFailure {
  readonly kind = 'file_changed';
  constructor() {
    super('the file was changed or removed after it was checked; nothing of it counts; submit it again');
  }
}

/** The key follows from what is submitted, so that no other file and no other environment can have it. */
function adviceOnConflict(tries: number): string {
  const cause =
    tries > 1
      ? 'an earlier try of this command was not answered and may have made a run'
      : 'the key follows from content, document type and environment, so the document was probably submitted before, perhaps under another name';
  return `${cause}; look for its run before you use --new, which makes another`;
}

export function problemOf(error: unknown, advice?: string): Problem {
  if (error instanceof ServiceError) {
    if (error.kind === 'timeout') advice ??= 'SCANFEED_REQUEST_TIMEOUT allows more time';
    const message = advice === undefined ? error.message : `${error.message}; ${advice}`;
    // As every command judges it: a maintenance page, which is no JSON, is a service that is away.
    return { kind: error.kind, message, passing: explain(error).exitCode === EXIT.tryAgain };
  }
  if (!(error instanceof CommandFailure)) throw error;
  return { kind: error instanceof FileChanged ? error.kind : 'too_many_runs', message: error.message, passing: false };
}
