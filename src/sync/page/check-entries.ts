import { isUtf8 } from 'node:buffer';
import type { ReadField } from '../../core/json/field-places.js';
import { bytesOf, elementRanges, memberRanges, sliceOf } from '../../core/json/ranges.js';
import type { Range } from '../../core/json/scan.js';
import type { InterfaceField } from '../../core/run-fields.js';
import type {
  AcceptedEntry,
  EntryBatch,
  FeedRun,
  PendingReason,
  QuarantineEntry,
  RawPage,
  RawRun,
} from '../ports/index.js';
import { checkEntry, type RejectedEntry, type UsableEntry } from './check-entry.js';
import { extraFields } from './extra-fields.js';
import { mayExceedLimits } from './json-limits.js';
import { isStorableJson, repairJson } from './storable-text.js';

/** An entry that passed the checks. */
export interface CheckedEntry {
  readonly accepted: AcceptedEntry;
  /** Returns the bytes as received. */
  payload(): Uint8Array;
  /** The entry before its text was repaired, for the quarantine. */
  readonly original: QuarantineEntry | null;
  /** The result that was loaded for it. Without it, the entry is pending. */
  readonly result?: CheckedEntry;
  /** For an entry that was delivered truncated. */
  readonly loading?: Loading;
}

/** The outcome for a truncated entry. `skipped`: it is stored in full or past the retention, or no wanted value is missing. */
export type Loading = 'resolved' | 'pending' | 'skipped';

/** The entries of a page after the checks: those to store, and those to quarantine. */
export interface CheckedEntries {
  readonly entries: readonly CheckedEntry[];
  readonly quarantine: readonly QuarantineEntry[];
}

/**
 * Checks every entry of a page. The order matters: validate, quarantine, and only then (in the store) deduplicate. The bytes
 * of the entries are checked only if the scan of the page found something suspicious.
 */
export function checkEntries(page: RawPage): CheckedEntries {
  const { places } = page;
  const bytesOf = entrySource(page.body);
  const suspect = isSuspect(page);
  const entries: CheckedEntry[] = [];
  const quarantine: QuarantineEntry[] = [];
  page.items.forEach((item, index) => {
    const payload = () => bytesOf(index);
    const bytes = suspect ? payload() : undefined;
    const checked = checkEntry(item, places.repeatedOf(index), bytes);
    if (!checked.usable) {
      quarantine.push(rejectedEntry(checked, payload()));
      return;
    }
    const isStorable = bytes === undefined || isStorableJson(bytes);
    const entry = (isStorable ? checkedEntry : repairedEntry)(checked, places.fieldsOf(index), payload);
    entries.push(entry);
    if (entry.original !== null) quarantine.push(entry.original);
  });
  return { entries, quarantine };
}

/** Returns whether the body may contain values that PostgreSQL refuses, or that parsing hides. */
function isSuspect({ body, facts }: RawPage | RawRun): boolean {
  return facts.hasSpecialEscapes || mayExceedLimits(facts, body.length) || !isUtf8(body);
}

/** Checks a single-run response (interface 4.3) without its `rawOcrResult`. Returns null if it is unusable. */
export function checkRun(raw: RawRun): CheckedEntry | null {
  const { body, places } = raw;
  const { rawOcrResult: _, ...run } = raw.run;
  const payload = () => body; // must not keep the parsed response, which may take 100 times as much memory
  const received = isSuspect(raw) ? withoutRawResult(raw) : null;
  const checked = received === null ? checkEntry(run) : checkEntry(run, [], body, received);
  if (!checked.usable) return null;
  const isStorable = received === null || received.every(isStorableJson);
  return (isStorable ? checkedEntry : repairedEntry)(checked, places.fieldsOf(0), payload);
}

/** Returns the bytes of a response with null in place of its `rawOcrResult`. */
function withoutRawResult({ body, places }: RawRun): readonly Uint8Array[] {
  const left = places.fieldsOf(0)('rawOcrResult');
  return left === null ? [body] : [body.subarray(0, left.start), NULL, body.subarray(left.end)];
}

const NULL = Buffer.from('null');

/** Returns an entry and the result that was loaded for it, which the store merges; of two revisions, only the result. */
function sourcesOf({ accepted, result }: CheckedEntry): readonly AcceptedEntry[] {
  if (result === undefined) return [accepted];
  if (result.accepted.run.revision !== accepted.run.revision) return [result.accepted];
  return [accepted, { ...result.accepted, isAnswer: true }];
}

export function batchOf(entries: readonly CheckedEntry[]): EntryBatch {
  return entries.flatMap(sourcesOf);
}

/** Marks a result that was requested with its markdown and has none. */
export function withoutMarkdown(entry: CheckedEntry): CheckedEntry {
  return { ...entry, accepted: { ...entry.accepted, markdownAbsent: true } };
}

export function withPending(entry: CheckedEntry, pending: PendingReason): CheckedEntry {
  return { ...entry, accepted: { ...entry.accepted, pending } };
}

/** Returns a quarantine row for an entry that PostgreSQL does not accept. */
export function refusedEntry(
  { accepted, payload }: CheckedEntry,
  { constraint }: { readonly constraint?: string | undefined } = {},
): QuarantineEntry {
  const { scanId, revision } = accepted.run;
  return {
    scanId,
    revision,
    ...(constraint === undefined
      ? { reason: 'refused', detail: 'PostgreSQL does not accept a value of this entry' }
      : { reason: 'constraint', detail: `constraint ${constraint} of the database` }),
    payload: payload(),
    state: 'open',
  };
}

/** @param readField reads the fields to store */
function checkedEntry(checked: UsableEntry, readField: ReadField, payload: () => Uint8Array): CheckedEntry {
  const { run, replaced, normalized, unknownFields } = checked;
  const kept = (Object.keys(replaced) as InterfaceField[]).filter((name) => !normalized.includes(name));
  return {
    accepted: {
      run,
      readField,
      replaced,
      readExtra:
        unknownFields || kept.length > 0 ? () => extraFields(payload(), readField('documentType'), kept) : null,
      repaired: kept.length > 0,
      markdownAbsent: false,
      isAnswer: false,
      pending: null,
    },
    payload,
    original: null,
  };
}

/** Its values are repaired when they are sent, so that no copy of them is kept until then. */
function repairedEntry(checked: UsableEntry, readField: ReadField, payload: () => Uint8Array): CheckedEntry {
  const { accepted } = checkedEntry(checked, readField, payload);
  const { readExtra } = accepted;
  return {
    accepted: {
      ...accepted,
      readField: (field) => {
        const value = readField(field);
        return value && sliceOf(repairJson(bytesOf(value)));
      },
      readExtra: readExtra && (() => readExtra().map(repairJson)),
      repaired: true,
    },
    payload,
    original: repairedOriginal(checked.run, payload()),
  };
}

function rejectedEntry(checked: RejectedEntry, payload: Uint8Array): QuarantineEntry {
  const { scanId, revision, reason, detail } = checked;
  return { scanId, revision, reason, detail, payload, state: 'open' };
}

function repairedOriginal({ scanId, revision }: FeedRun, payload: Uint8Array): QuarantineEntry {
  return {
    scanId,
    revision,
    reason: 'text',
    detail: 'the entry has text that PostgreSQL cannot store (U+0000, half a surrogate pair, or invalid UTF-8)',
    payload,
    state: 'repaired',
  };
}

/** Returns a function for the bytes of entry n. They are located on first use, since most pages never need them. */
function entrySource(body: Uint8Array): (index: number) => Uint8Array {
  let ranges: readonly Range[] | undefined;
  return (index) => {
    ranges ??= itemRanges(body);
    const range = ranges[index];
    if (range === undefined) throw new RangeError(`the page has no entry ${index}`);
    return body.subarray(range.start, range.end);
  };
}

function itemRanges(body: Uint8Array): readonly Range[] {
  const items = memberRanges(body).get('items');
  return items === undefined ? [] : elementRanges(body, items.start);
}
