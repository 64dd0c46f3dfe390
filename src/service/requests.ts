import { FormData } from 'undici';
import type { FeedRequest } from '../sync/ports/index.js';
import { InvalidArgumentError } from './errors/request-errors.js';

/** A PDF to submit (interface 4.1). */
export interface SubmitRequest {
  /** The PDF. */
  readonly file: Uint8Array | Blob;
  readonly fileName: string;
  /** Slug of the document type to recognize against. */
  readonly documentType: string;
  readonly environment: 'prod' | 'test';
  /** Freely chosen, visible ASCII. The same key with the same request gives the run that exists. */
  readonly idempotencyKey?: string | undefined;
}

/**
 * Path and query of the feed (interface 4.2). Every filter is written out, since the service's defaults hide failed
 * and test runs.
 * @throws InvalidArgumentError
 */
export function feedPath({ filters, start, limit, markdown }: FeedRequest): string {
  if (!Number.isInteger(limit) || limit < 1 || limit > 200) {
    throw new InvalidArgumentError('limit must be a whole number from 1 to 200');
  }
  if (filters.status.length === 0) throw new InvalidArgumentError('status must name completed, failed or both');
  if (filters.documentType === '') throw new InvalidArgumentError('documentType must not be empty');
  const parameters: [string, string][] = [
    ['status', filters.status.join(',')],
    ['environment', filters.environment],
    ['limit', String(limit)],
  ];
  if (filters.documentType !== null) parameters.push(['documentType', filters.documentType]);
  if (markdown) parameters.push(['markdown', 'true']);
  if ('cursor' in start) {
    if (start.cursor === '')
      throw new InvalidArgumentError('cursor must not be empty: that would start at the beginning');
    parameters.push(['cursor', start.cursor]);
  } else if ('since' in start) {
    if (Number.isNaN(start.since.getTime())) throw new InvalidArgumentError('since must be a valid date');
    parameters.push(['since', start.since.toISOString()]);
  }
  return `/scans?${query(parameters)}`;
}

/**
 * Path and query of a single run (interface 4.3).
 * @throws InvalidArgumentError also for ids that would address something else than a run
 */
export function runPath(scanId: string, markdown: boolean): string {
  if (/^\.{0,2}$/.test(scanId))
    throw new InvalidArgumentError('the scan id is empty, or dots that lead to another address');
  return `/scans/${encode(scanId, 'the scan id')}${markdown ? '?markdown=true' : ''}`;
}

/** @throws InvalidArgumentError */
export function submitPath(environment: string): string {
  if (environment !== 'prod' && environment !== 'test') {
    throw new InvalidArgumentError('environment must be prod or test; it has no default');
  }
  return `/scans?${query([['environment', environment]])}`;
}

/** The multipart body of a submission. The file goes last, so that a reader knows its type before it comes. */
export function submitForm({ file, fileName, documentType }: SubmitRequest): FormData {
  const form = new FormData();
  form.set('documentType', documentType);
  const pdf =
    file instanceof Blob ? file.slice(0, file.size, 'application/pdf') : new Blob([file], { type: 'application/pdf' });
  form.set('file', pdf, fileName);
  return form;
}

/** @throws InvalidArgumentError */
export function submitHeaders({ idempotencyKey }: SubmitRequest): Record<string, string> {
  if (idempotencyKey === undefined) return {};
  if (!/^[\x21-\x7e]+$/.test(idempotencyKey))
    throw new InvalidArgumentError('the Idempotency-Key must be visible ASCII');
  return { 'idempotency-key': idempotencyKey };
}

function query(parameters: readonly (readonly [string, string])[]): string {
  return parameters.map(([name, value]) => `${name}=${encode(value, name)}`).join('&');
}

function encode(value: string, name: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    throw new InvalidArgumentError(`${name} is not valid Unicode`);
  }
}
