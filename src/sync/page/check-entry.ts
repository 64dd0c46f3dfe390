import { isUtf8 } from 'node:buffer';
import { memberRanges } from '../../core/json/ranges.js';
import {
  type FieldRule,
  hasUnknownFields,
  type InterfaceField,
  MAX_REVISION,
  OPTIONAL_FIELDS,
} from '../../core/run-fields.js';
import type { FeedRun, Replacements } from '../ports/index.js';
import { type ExceededLimit, exceededLimit, isUnderflow, JSON_LIMITS } from './json-limits.js';
import { fitsIn, isStorable } from './storable-text.js';
import { readRunTime, type Timestamp } from './timestamps.js';

/** The fields of an entry as they are stored. */
export interface UsableEntry {
  readonly usable: true;
  readonly run: FeedRun;
  readonly documentType: { readonly slug: string | null; readonly name: string | null };
  readonly replaced: Replacements;
  /** Those replaced fields in which only the notation was changed, which is not a repair. */
  readonly normalized: readonly InterfaceField[];
  readonly unknownFields: boolean;
}

/** The reason why an entry cannot be stored (promise 5). */
export interface RejectedEntry {
  readonly usable: false;
  readonly reason: RejectReason;
  readonly detail: string;
  readonly scanId: string | null;
  readonly revision: number | null;
}

export type EntryCheck = UsableEntry | RejectedEntry;

/**
 * Why an entry is quarantined. `repeated_field`: it has a field twice, and nothing tells which value is right. `refused`:
 * PostgreSQL does not accept it. `constraint`: nor does a constraint of a table, which is named.
 */
export type RejectReason =
  | 'repeated_field'
  | 'not_an_object'
  | 'scan_id'
  | 'revision'
  | 'status'
  | 'environment'
  | 'document_type'
  | 'file_name'
  | ExceededLimit
  | 'refused'
  | 'constraint';

/**
 * Maximum length of the scan id and of the document type's slug, UTF-8 bytes. An index entry holds 2,704 bytes; the index of a
 * report may have the slug together with all texts of a limited length.
 */
const INDEXED_BYTES = { scanId: 1024, slug: 512 } as const;

const EXCEEDED: Readonly<Record<ExceededLimit, string>> = {
  nesting: `the entry is nested more than ${JSON_LIMITS.depth} deep`,
  elements: `an array or object of the entry has more than ${JSON_LIMITS.elements} elements`,
  expansion: `without exponents, the numbers of the entry would be more than ${JSON_LIMITS.expansion} characters longer`,
};

type Fields = Readonly<Record<string, unknown>>;
type Problem = { readonly reason: RejectReason; readonly detail: string };

/**
 * Checks an entry of the feed, or a finished single run, against interface 2.1. Never quotes values. Pure.
 * @param repeated the fields that it has more than once
 * @param bytes of the entry, if they may contain something that parsing hides: invalid UTF-8, deep nesting, exponents, very
 * many elements
 * @param toStore the parts of the bytes to store, cut between values, if not all are stored
 */
export function checkEntry(
  entry: unknown,
  repeated: readonly InterfaceField[] = [],
  bytes?: Uint8Array,
  toStore: readonly Uint8Array[] = bytes === undefined ? [] : [bytes],
): EntryCheck {
  if (!isObject(entry)) return unusable({ reason: 'not_an_object', detail: 'the entry is not an object' }, null, null);
  const scanId = repeated.includes('scanId') || hasInvalidScanId(bytes) ? null : usableScanId(entry.scanId);
  const revision = repeated.includes('revision') ? null : usableRevision(entry.revision);
  const problem = repeatedProblem(repeated) ?? requiredFieldProblem(entry, scanId, revision) ?? limitProblem(toStore);
  if (problem !== null) return unusable(problem, scanId, revision);
  return checkOptional(entry, bytes);
}

function repeatedProblem(repeated: readonly InterfaceField[]): Problem | null {
  return repeated.length === 0 ? null : { reason: 'repeated_field', detail: `repeated: ${repeated.join(', ')}` };
}

function requiredFieldProblem(entry: Fields, scanId: string | null, revision: number | null): Problem | null {
  const { status, environment, documentType, fileName } = entry;
  if (scanId === null) {
    return { reason: 'scan_id', detail: `scanId is not a string of 1 to ${INDEXED_BYTES.scanId} bytes` };
  }
  if (revision === null) {
    return { reason: 'revision', detail: `revision is not an integer from 1 to ${MAX_REVISION}` };
  }
  if (status !== 'completed' && status !== 'failed') {
    return { reason: 'status', detail: 'status is neither completed nor failed' };
  }
  if (environment !== 'prod' && environment !== 'test') {
    return { reason: 'environment', detail: 'environment is neither prod nor test' };
  }
  if (!isObject(documentType) || !isTextOrNull(documentType.slug) || !isTextOrNull(documentType.name)) {
    return { reason: 'document_type', detail: 'documentType is not an object with slug and name (string or null)' };
  }
  if (typeof documentType.slug === 'string' && !fitsIn(documentType.slug, INDEXED_BYTES.slug)) {
    return { reason: 'document_type', detail: `documentType.slug has more than ${INDEXED_BYTES.slug} bytes` };
  }
  if (typeof fileName !== 'string') return { reason: 'file_name', detail: 'fileName is not a string' };
  return null;
}

function limitProblem(stored: readonly Uint8Array[]): Problem | null {
  const limit = exceededLimit(stored);
  return limit === null ? null : { reason: limit, detail: EXCEEDED[limit] };
}

function checkOptional(entry: Fields, bytes: Uint8Array | undefined): UsableEntry {
  const replaced: { -readonly [Name in keyof Replacements]: Replacements[Name] } = {};
  const normalized: InterfaceField[] = [];
  let delivered: Timestamp | null = null;
  for (const rule of OPTIONAL_FIELDS) {
    const { field } = rule;
    const given = entry[field];
    if (isAbsent(given)) continue;
    const time = rule.type === 'time' && typeof given === 'string' ? readRunTime(given) : null;
    if (field === 'deliveredAt') delivered = time;
    const isOfState = rule.state === undefined || rule.state === entry.status;
    if (!isOfState || (time === null && !matches(given, rule, bytes))) replaced[field] = null;
    else if (time !== null && time.text !== given) {
      replaced[field] = time.text;
      normalized.push(field);
    }
  }
  // An unreadable value must not make a run productive, so it counts as test mode.
  if (!isAbsent(entry.partnerTestMode) && typeof entry.partnerTestMode !== 'boolean') replaced.partnerTestMode = true;
  if (!isAbsent(entry.resultTruncated) && typeof entry.resultTruncated !== 'boolean') replaced.resultTruncated = null;
  const run = steeringFields(entry, delivered?.at ?? null, 'resultTruncated' in replaced);
  const type = entry.documentType as Fields;
  const documentType = { slug: textOrNull(type.slug), name: textOrNull(type.name) };
  return { usable: true, run, documentType, replaced, normalized, unknownFields: hasUnknownFields(entry, type) };
}

function steeringFields(entry: Fields, deliveredAt: Date | null, unreadableFlag: boolean): FeedRun {
  return {
    scanId: entry.scanId as string,
    revision: entry.revision as number,
    status: entry.status as FeedRun['status'],
    hasData: isObject(entry.data),
    hasMarkdown: typeof entry.markdown === 'string',
    // An unreadable flag counts as truncated. The result is then requested if a value is missing, which does no harm.
    truncated: entry.resultTruncated === true || unreadableFlag,
    deliveredAt,
  };
}

function unusable({ reason, detail }: Problem, scanId: string | null, revision: number | null): EntryCheck {
  return { usable: false, reason, detail, scanId, revision };
}

function usableScanId(value: unknown): string | null {
  const isUsable =
    typeof value === 'string' && value !== '' && isStorable(value) && fitsIn(value, INDEXED_BYTES.scanId);
  return isUsable ? value : null;
}

/** Returns whether the scan id is not valid UTF-8. It is not repaired, since two different ids could become equal. */
function hasInvalidScanId(bytes: Uint8Array | undefined): boolean {
  if (bytes === undefined || isUtf8(bytes)) return false;
  const range = memberRanges(bytes).get('scanId');
  return range !== undefined && !isUtf8(bytes.subarray(range.start, range.end));
}

function usableRevision(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_REVISION
    ? (value as number)
    : null;
}

/** Returns whether a value other than a time matches the rule of its field. */
function matches(value: unknown, { field, type, maxBytes }: FieldRule, bytes: Uint8Array | undefined): boolean {
  if (type === 'number') return isDouble(value, field, bytes);
  if (type === 'object') return isObject(value);
  return type !== 'time' && typeof value === 'string' && (maxBytes === undefined || fitsIn(value, maxBytes));
}

/** Returns whether PostgreSQL accepts a number as double precision. It refuses numbers that are too large or too close to zero. */
function isDouble(value: unknown, name: string, bytes: Uint8Array | undefined): boolean {
  if (!Number.isFinite(value)) return false;
  return value !== 0 || bytes === undefined || !isUnderflow(bytes, name);
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

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
