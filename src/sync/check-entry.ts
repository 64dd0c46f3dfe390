import type { FeedRun } from './ports.js';
import { isStorable } from './storable-text.js';

/** An entry's fields as they may be stored, or why it cannot be (promise 5). */
export type Checked =
  | {
      readonly usable: true;
      readonly run: FeedRun;
      /** Bad optional values: what stands in their place. */
      readonly replaced: Readonly<Record<string, string | boolean | null>>;
      /** Those of them whose notation alone was changed. */
      readonly normalised: readonly string[];
    }
  | {
      readonly usable: false;
      readonly reason: RejectReason;
      readonly detail: string;
      readonly scanId: string | null;
      readonly revision: number | null;
    };

/** Why an entry is quarantined. `refused`: PostgreSQL would not take it. */
export type RejectReason =
  | 'not_an_object'
  | 'scan_id'
  | 'revision'
  | 'status'
  | 'environment'
  | 'document_type'
  | 'file_name'
  | 'refused';

/** Longest scan id, in UTF-8 bytes: it is the primary key, and an index entry holds 2,704 bytes at most. */
const SCAN_ID_BYTES = 1024;
const HIGHEST_REVISION = 2 ** 31 - 1;
const TIMESTAMPS = ['submittedAt', 'completedAt', 'deliveredAt'] as const;
const OPTIONAL_TEXTS = ['partnerName', 'failureReason', 'error', 'markdown'] as const;

type Fields = Readonly<Record<string, unknown>>;

/** Checks an entry of the feed, or a finished single run, against interface 2.1. Pure; values are never quoted. */
export function checkEntry(entry: unknown): Checked {
  if (!isObject(entry)) return unusable('not_an_object', 'the entry is not an object', {});
  const problem = requiredFieldProblem(entry);
  if (problem !== null) return unusable(problem.reason, problem.detail, entry);
  return { usable: true, ...checkOptional(entry) };
}

function requiredFieldProblem(entry: Fields): { reason: RejectReason; detail: string } | null {
  const { scanId, revision, status, environment, documentType, fileName } = entry;
  if (usableScanId(scanId) === null) {
    return { reason: 'scan_id', detail: `scanId is not a text of 1 to ${SCAN_ID_BYTES} bytes` };
  }
  if (usableRevision(revision) === null) {
    return { reason: 'revision', detail: `revision is not an integer from 1 to ${HIGHEST_REVISION}` };
  }
  if (status !== 'completed' && status !== 'failed') {
    return { reason: 'status', detail: 'status is neither completed nor failed' };
  }
  if (environment !== 'prod' && environment !== 'test') {
    return { reason: 'environment', detail: 'environment is neither prod nor test' };
  }
  if (!isObject(documentType) || !isTextOrNull(documentType.slug) || !isTextOrNull(documentType.name)) {
    return { reason: 'document_type', detail: 'documentType is not an object with slug and name, each a text or null' };
  }
  if (typeof fileName !== 'string') return { reason: 'file_name', detail: 'fileName is not a text' };
  return null;
}

function checkOptional(entry: Fields): Pick<Extract<Checked, { usable: true }>, 'run' | 'replaced' | 'normalised'> {
  const replaced: Record<string, string | boolean | null> = {};
  const normalised: string[] = [];
  for (const name of OPTIONAL_TEXTS) if (!isTextOrNull(entry[name])) replaced[name] = null;
  for (const name of TIMESTAMPS) {
    const given = entry[name];
    if (given === undefined || given === null) continue;
    const time = typeof given === 'string' ? readTimestamp(given) : null;
    if (time === null) replaced[name] = null;
    else if (time.zoneAdded) {
      replaced[name] = time.text;
      normalised.push(name);
    }
  }
  if (!isAbsent(entry.ocrConfidence) && !Number.isFinite(entry.ocrConfidence)) replaced.ocrConfidence = null;
  if (!isAbsent(entry.data) && !isObject(entry.data)) replaced.data = null;
  // A value that cannot be read must not make a run productive: the safe side is the test mode.
  if (!isAbsent(entry.partnerTestMode) && typeof entry.partnerTestMode !== 'boolean') replaced.partnerTestMode = true;
  if (!isAbsent(entry.resultTruncated) && typeof entry.resultTruncated !== 'boolean') replaced.resultTruncated = null;
  return { run: steeringFields(entry, replaced), replaced, normalised };
}

function steeringFields(entry: Fields, replaced: Fields): FeedRun {
  const deliveredAt = 'deliveredAt' in replaced ? replaced.deliveredAt : entry.deliveredAt;
  return {
    scanId: entry.scanId as string,
    revision: entry.revision as number,
    status: entry.status as FeedRun['status'],
    hasData: isObject(entry.data),
    hasMarkdown: typeof entry.markdown === 'string',
    // An unreadable flag on a completed run without data is taken for a truncated one: asking once more loses nothing.
    truncated: entry.resultTruncated === true || 'resultTruncated' in replaced,
    deliveredAt: typeof deliveredAt === 'string' ? validDate(deliveredAt) : null,
  };
}

const ISO_8601 =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|[+-](?:0\d|1[0-4]):?[0-5]\d)?$/;

/**
 * Strict ISO 8601 date-times of real days, years 1 to 9999. PostgreSQL alone would take `now`, `infinity` and `24:00`;
 * JavaScript would roll 30 February over. A time without a zone is UTC.
 */
export function readTimestamp(given: string): { readonly text: string; readonly zoneAdded: boolean } | null {
  const match = ISO_8601.exec(given);
  if (match === null) return null;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const real = year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
  if (!real || hour > 23 || minute > 59 || second > 59) return null;
  const zoneAdded = match[8] === undefined;
  const plain = given.replace(',', '.');
  return { text: zoneAdded ? `${plain}Z` : plain, zoneAdded: zoneAdded || plain !== given };
}

function daysIn(year: number, month: number): number {
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0;
}

function unusable(reason: RejectReason, detail: string, entry: Fields): Checked {
  const scanId = usableScanId(entry.scanId);
  return { usable: false, reason, detail, scanId, revision: usableRevision(entry.revision) };
}

function usableScanId(value: unknown): string | null {
  if (typeof value !== 'string' || value === '' || !isStorable(value)) return null;
  return Buffer.byteLength(value) <= SCAN_ID_BYTES ? value : null;
}

function usableRevision(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= HIGHEST_REVISION
    ? (value as number)
    : null;
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

function isTextOrNull(value: unknown): boolean {
  return isAbsent(value) || typeof value === 'string';
}

function validDate(text: string): Date | null {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? null : date;
}
