import { FormData } from 'undici';
import { type FeedFilters, FILTER_NAMES, FILTERS, filterParameters, UNFILTERED } from '../core/feed-filters.js';
import type { FeedRequest } from '../sync/ports/index.js';
import { atLeastOne, requireArgument } from './check-arguments.js';
import { InvalidArgumentError } from './errors/service-error.js';
import { dateOf } from './feed-query.js';

/** A PDF to submit (interface 4.1). */
export interface SubmitRequest {
  /** The PDF. */
  readonly file: Uint8Array | Blob;
  /** The file name that the run will have (interface 2.1). */
  readonly fileName: string;
  /** Slug of the document type. */
  readonly documentType: string;
  /** Environment of the run. It has no default (interface 4.1). */
  readonly environment: 'prod' | 'test';
  /** Any visible ASCII text. A repeated request with the same key returns the existing run. */
  readonly idempotencyKey?: string | undefined;
}

/**
 * Returns the path and query of a feed request (interface 4.2). Every filter is sent, since the service's defaults hide
 * failed and test runs.
 * @throws InvalidArgumentError
 */
export function feedPath({ filters, start, limit, markdown }: FeedRequest): string {
  atLeastOne(limit, 'limit', 200);
  for (const name of FILTER_NAMES) requireFilter(name, filters[name]);
  const parameters: [string, string][] = [...filterParameters(filters), ['limit', String(limit)]];
  if (markdown) parameters.push(['markdown', 'true']);
  if ('cursor' in start) {
    const isText = typeof start.cursor === 'string' && start.cursor !== '';
    requireArgument(isText, 'cursor must be a string that is not empty: an empty one would start at the beginning');
    parameters.push(['cursor', start.cursor]);
  } else if ('since' in start) {
    parameters.push(['since', dateOf(start.since).toISOString()]);
  }
  return `/scans?${query(parameters)}`;
}

function requireFilter(name: keyof FeedFilters, given: unknown): void {
  const { values } = FILTERS[name];
  if (values === null) return;
  const allowed = new Set<unknown>([values, UNFILTERED[name]].flat());
  const isList = Array.isArray(UNFILTERED[name]);
  const parts = [given].flat();
  const fits = Array.isArray(given) === isList && parts.length > 0 && parts.every((part) => allowed.has(part));
  requireArgument(fits, `${name} must be ${isList ? 'a list of one or more of' : 'one of'} ${[...allowed].join(', ')}`);
}

/**
 * Returns the path and query of a single-run request (interface 4.3).
 * @throws InvalidArgumentError also for an id that would lead to another path
 */
export function runPath(scanId: string, markdown: boolean): string {
  if (typeof scanId !== 'string' || /^\.{0,2}$/.test(scanId))
    throw new InvalidArgumentError('scanId must be a string, but not empty, "." or "..", which lead to another path');
  return `/scans/${encode(scanId, 'scanId')}${markdown ? '?markdown=true' : ''}`;
}

/**
 * Returns a submission (interface 4.1). The file is last in its multipart body, so that the service knows its document type first.
 * @throws InvalidArgumentError
 */
export function submission({ file, fileName, documentType, environment, idempotencyKey }: SubmitRequest) {
  const isOne = environment === 'prod' || environment === 'test';
  requireArgument(isOne, 'environment must be prod or test; it has no default');
  requireArgument(file instanceof Blob || ArrayBuffer.isView(file), 'file must be a Uint8Array or a Blob');
  for (const [name, text] of Object.entries({ fileName, documentType }))
    requireArgument(typeof text === 'string' && text !== '', `${name} must be a string that is not empty`);
  const form = new FormData();
  form.set('documentType', documentType);
  const pdf =
    file instanceof Blob ? file.slice(0, file.size, 'application/pdf') : new Blob([file], { type: 'application/pdf' });
  form.set('file', pdf, fileName);
  const isKey = idempotencyKey === undefined || /^[\x21-\x7e]+$/.test(idempotencyKey);
  requireArgument(isKey, 'idempotencyKey must be visible ASCII');
  const headers = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
  return { path: `/scans?${query([['environment', environment]])}`, form, headers };
}

function query(parameters: readonly (readonly [string, string])[]): string {
  const empty = parameters.find(([, value]) => value === '');
  if (empty !== undefined) throw new InvalidArgumentError(`${empty[0]} must not be empty`);
  return parameters.map(([name, value]) => `${name}=${encode(value, name)}`).join('&');
}

function encode(value: string, name: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    throw new InvalidArgumentError(`${name} is not valid Unicode`);
  }
}
