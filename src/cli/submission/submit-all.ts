import PQueue from 'p-queue';
import { idempotencyKey } from './idempotency-key.js';
import type { PdfFile } from './pdf-files.js';
import { nothingSent, type SubmittedFile } from './submission.js';
import { type SubmitParts, type SubmitWish, submitFile } from './submit-file.js';

/** Failures that every other submission of the command would meet as well; a 404 is the document type (interface 7). */
const OF_ALL = new Set(['connection', 'certificate', 'api_key', 'http_401', 'http_403', 'http_404', 'redirect']);

export interface SubmitAllParts extends SubmitParts {
  /** Files on their way at once. */
  readonly concurrency: number;
  /** Told of each file as soon as its outcome is known. */
  readonly onFile: (submitted: SubmittedFile) => void;
}

/**
 * Submits files, several at once; the failure of one does not keep the others. Only what every one would meet ends it:
 * what is not on its way by then is not sent. Files of the same content are sent once.
 * @returns in the order of the files
 */
export async function submitAll(
  files: readonly PdfFile[],
  wish: SubmitWish,
  parts: SubmitAllParts,
): Promise<readonly SubmittedFile[]> {
  const queue = new PQueue({ concurrency: parts.concurrency });
  const first = new Map<string, Promise<SubmittedFile>>();
  let ended = false;
  const send = async (file: PdfFile): Promise<SubmittedFile> => {
    if (ended) return nothingSent(file.path, idempotencyKey({ ...wish, sha256: file.sha256 }));
    const submitted = await submitFile(file, wish, parts);
    if (submitted.problem !== null && OF_ALL.has(submitted.problem.kind)) ended = true;
    return submitted;
  };
  return Promise.all(
    files.map(async (file) => {
      const same = first.get(file.sha256);
      const sent = same?.then((submitted) => repeatOf(submitted, file)) ?? queue.add(() => send(file));
      if (same === undefined) first.set(file.sha256, sent);
      const submitted = await sent;
      parts.onFile(submitted);
      return submitted;
    }),
  );
}

function repeatOf(submitted: SubmittedFile, { path }: PdfFile): SubmittedFile {
  const outcome = submitted.outcome === 'submitted' ? 'repeated' : submitted.outcome;
  return { ...submitted, file: path, outcome };
}
