import { readFileSync } from 'node:fs';
import type { Emulator, FaultKind, RequestListener, RequestRecord } from '../../../src/emulator/index.js';
import { type Answer, Description, type OpenApi, type Request } from './description.js';

const text = readFileSync(new URL('../../../openapi/recognition-service.json', import.meta.url), 'utf8');

/** The description of the service. */
export const document = JSON.parse(text) as OpenApi;

const closed = ['DocumentType', 'FeedEntry', 'SingleRun', 'FeedPage', 'NewSubmission', 'RepeatedSubmission', 'Error'];

export const serviceDescription = new Description(document, closed);

const calls = {
  feed: { method: 'GET', path: '/scans' },
  run: { method: 'GET', path: '/scans/{scanId}' },
  submit: { method: 'POST', path: '/scans' },
} as const;

/** Faults that put another response in the place of the service's. What damages a response on its way is checked before. */
const replaced: readonly (FaultKind | null)[] = ['status', 'html', 'answer', 'missing-cursor'];

/** Beyond this a response is the same renderer's with longer texts, and looking through it would cost the tests minutes. */
const mostBytes = 2 ** 20;

export interface Watch {
  /** In what requests and responses differed so far, a line each. */
  readonly differences: string[];
  end(): void;
}

/**
 * Compares the requests and responses of an emulator with the description of the service. What a script or a fault put in the place
 * of a response is let pass; a request that differs must not have been answered with success.
 *
 * @param strict where the client is scanfeed: no request may differ, and none may ask for more than is described
 */
export function watchEmulator(emulator: Pick<Emulator, 'requests'>, { strict }: { readonly strict: boolean }): Watch {
  const differences: string[] = [];
  const listen: RequestListener = (record, answer) => {
    const request = requestOf(record);
    const found = [...wrongWith(request, record, strict), ...wrongWithAnswer(request, record, answerOf(answer))];
    differences.push(...found.map((what) => `request ${record.number} (${record.operation}): ${what}`));
  };
  return { differences, end: emulator.requests.observe(listen) };
}

function requestOf({ operation, query, headers }: RequestRecord): Request {
  return { ...calls[operation], query, headers };
}

function answerOf(answer: Parameters<RequestListener>[1]): Answer | null {
  if (answer === null || answer.body.length > mostBytes) return null;
  return { status: answer.status, headers: answer.headers, body: Buffer.from(answer.body as string).toString() };
}

function wrongWith(request: Request, { status, fault, verbatim }: RequestRecord, strict: boolean): string[] {
  const { differences, surplus } = serviceDescription.ofRequest(request);
  if (strict) return [...differences, ...surplus.map((name) => `query ${name} is not described`)];
  const succeeded = status !== null && status < 300 && !replaced.includes(fault) && !verbatim;
  return succeeded ? differences.map((what) => `returned ${status}, although ${what}`) : [];
}

function wrongWithAnswer(
  request: Request,
  { operation, fault, verbatim }: RequestRecord,
  answer: Answer | null,
): string[] {
  if (answer === null || verbatim || replaced.includes(fault)) return [];
  const { differences, unlisted } = serviceDescription.ofAnswer(request, answer);
  // Left open by the interface: what a missing schema is answered with, and what a single run is refused with.
  const open = operation !== 'feed' && answer.status >= 400 && answer.status < 500;
  return unlisted && !open ? [`the status ${answer.status} is not listed`, ...differences] : differences;
}
