import { DOCUMENT_TYPE_FIELDS, INTERFACE_FIELDS, type InterfaceField } from '../core/run-fields.js';
import { checkEntry, type EntryCheck } from '../sync/page/check-entry.js';
import type { CompletedEntry, FailedEntry, FeedEntry, Run, RunFields } from './entry-types.js';

type Fields = Readonly<Record<string, unknown>>;
type Usable = Extract<EntryCheck, { usable: true }>;
type Unusable = Extract<EntryCheck, { usable: false }>;

const RUN_FIELDS: ReadonlySet<string> = new Set(INTERFACE_FIELDS);

/** Reads an entry of the feed by the rules of the daemon. Returns what is wrong if it is not usable. */
export function readEntry(given: unknown, repeated: readonly InterfaceField[] = []): FeedEntry | Unusable {
  const check = checkEntry(given, repeated);
  if (!check.usable) return check;
  const value = valuesOf(given as Fields, check);
  return value('status') === 'failed' ? failedEntry(given as Fields, check) : completedEntry(given as Fields, check);
}

/** Reads a single-run answer, whose run may still be processing (interface 2.2). */
export function readSingleRun(given: Fields): Run | Unusable {
  const addition = given.rawOcrResult === undefined ? {} : { rawOcrResult: given.rawOcrResult };
  if (given.status !== 'processing') {
    const entry = readEntry(given);
    return isUnusable(entry) ? entry : { ...entry, ...addition };
  }
  const check = checkEntry({ ...given, status: 'completed' }); // apart from its status, it has the shape of an entry
  if (!check.usable) return check;
  const withoutData = { ...check, replaced: { ...check.replaced, data: null } };
  return { ...commonFields(given, withoutData), status: 'processing', ...addition };
}

/** Returns whether a run could not be read. */
export function isUnusable(read: FeedEntry | Run | Unusable): read is Unusable {
  return 'usable' in read;
}

function completedEntry(given: Fields, check: Usable): CompletedEntry {
  const value = valuesOf(given, check);
  return {
    ...commonFields(given, check),
    status: 'completed',
    data: value('data') as CompletedEntry['data'],
  };
}

function failedEntry(given: Fields, check: Usable): FailedEntry {
  const value = valuesOf(given, check);
  return {
    ...commonFields(given, check),
    status: 'failed',
    failureReason: value('failureReason') as string | null,
    error: value('error') as string | null,
  };
}

/** The checks have seen that each value has its type. */
function commonFields(given: Fields, check: Usable): RunFields {
  const value = valuesOf(given, check);
  return {
    scanId: check.run.scanId,
    revision: check.run.revision,
    environment: value('environment') as RunFields['environment'],
    documentType: check.documentType,
    fileName: value('fileName') as string,
    partnerName: value('partnerName') as string | null,
    partnerTestMode: value('partnerTestMode') as boolean | null,
    ocrConfidence: value('ocrConfidence') as number | null,
    submittedAt: value('submittedAt') as string | null,
    completedAt: value('completedAt') as string | null,
    deliveredAt: value('deliveredAt') as string | null,
    resultTruncated: check.run.truncated,
    markdown: value('markdown') as string | null,
    extra: extraOf(given, check),
  };
}

/** Returns the values of fields: replaced ones as the daemon stores them, and null for missing ones. */
function valuesOf(given: Fields, { replaced }: Usable): (name: InterfaceField) => unknown {
  return (name) => (Object.hasOwn(replaced, name) ? replaced[name] : given[name]) ?? null;
}

/**
 * Returns the fields that the interface does not know, and the originals of replaced values, as the daemon stores them in
 * `extra`.
 */
function extraOf(given: Fields, { replaced, normalized }: Usable): Fields {
  const notations: readonly string[] = normalized;
  const extra = Object.entries(given).filter(([name, original]) => {
    const isReplaced = Object.hasOwn(replaced, name) && original !== null && !notations.includes(name);
    return isReplaced || !RUN_FIELDS.has(name);
  });
  const ofType = Object.entries(given.documentType as Fields).filter(([name]) => !isTypeField(name));
  if (ofType.length > 0) extra.push(['documentType', Object.fromEntries(ofType)]);
  return Object.fromEntries(extra); // an assignment to `__proto__` would not add a field
}

function isTypeField(name: string): boolean {
  return (DOCUMENT_TYPE_FIELDS as readonly string[]).includes(name);
}
