import { type InterfaceField, OPTIONAL_FIELDS, RUN_FIELDS, TYPE_FIELDS } from '../core/run-fields.js';
import { checkEntry, type RejectedEntry, type UsableEntry } from '../sync/page/check-entry.js';
import type { FeedEntry, ProcessingRun, Run } from './entry-types.js';

type Fields = Readonly<Record<string, unknown>>;

/** Reads an entry of the feed by the rules of the daemon. Returns what is wrong if it is not usable. */
export function readEntry(given: unknown, repeated: readonly InterfaceField[] = []): FeedEntry | RejectedEntry {
  const check = checkEntry(given, repeated);
  return check.usable ? entryOf<FeedEntry>(given as Fields, check, check.run.status) : check;
}

/** Reads a single-run response, whose run may still be processing (interface 2.2). */
export function readSingleRun(given: Fields): Run | RejectedEntry {
  const addition = given.rawOcrResult === undefined ? {} : { rawOcrResult: given.rawOcrResult };
  if (given.status !== 'processing') {
    const entry = readEntry(given);
    return isUnusable(entry) ? entry : { ...entry, ...addition };
  }
  const check = checkEntry({ ...given, status: 'completed' }); // apart from its status, it has the shape of an entry
  if (!check.usable) return check;
  const withoutData = { ...check, replaced: { ...check.replaced, data: null } };
  return { ...entryOf<ProcessingRun>(given, withoutData, 'processing'), ...addition };
}

/** Returns whether a run could not be read. */
export function isUnusable(read: FeedEntry | Run | RejectedEntry): read is RejectedEntry {
  return 'usable' in read;
}

/** Returns the fields that runs in this state have, with the values that the daemon stores. The checks have seen their types. */
function entryOf<Entry extends Run>(given: Fields, check: UsableEntry, status: Entry['status']): Entry {
  const { run, documentType, replaced } = check;
  const value = (name: InterfaceField) => (Object.hasOwn(replaced, name) ? replaced[name] : given[name]) ?? null;
  const optional = OPTIONAL_FIELDS.filter(({ state = status }) => state === status);
  return {
    scanId: run.scanId,
    revision: run.revision,
    status,
    environment: value('environment'),
    documentType,
    fileName: value('fileName'),
    partnerTestMode: value('partnerTestMode'),
    ...Object.fromEntries(optional.map(({ field }) => [field, value(field)])),
    resultTruncated: run.truncated,
    extra: extraOf(given, check),
  } as Entry;
}

/**
 * Returns the fields that the interface does not know, and the originals of replaced values, as the daemon stores them in
 * `extra`.
 */
function extraOf(given: Fields, { replaced, normalized }: UsableEntry): Fields {
  const notations: readonly string[] = normalized;
  const extra = Object.entries(given).filter(([name, original]) => {
    const isReplaced = Object.hasOwn(replaced, name) && original !== null && !notations.includes(name);
    return isReplaced || !RUN_FIELDS.has(name);
  });
  const ofType = Object.entries(given.documentType as Fields).filter(([name]) => !TYPE_FIELDS.has(name));
  if (ofType.length > 0) extra.push(['documentType', Object.fromEntries(ofType)]);
  return Object.fromEntries(extra); // an assignment to `__proto__` would not add a field
}
