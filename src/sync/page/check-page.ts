import { isUtf8 } from 'node:buffer';
import { allMembers, elementRanges, memberRanges } from '../../core/json/ranges.js';
import type { Range } from '../../core/json/scan.js';
import type {
  AcceptedEntry,
  EntryBatch,
  FeedRun,
  PageJson,
  PendingReason,
  QuarantineEntry,
  RawPage,
  RawRun,
} from '../ports/index.js';
import { checkEntry, type EntryCheck } from './check-entry.js';
import { mayExceedLimits } from './json-limits.js';
import { repairJson } from './storable-text.js';

/** An entry that passed the checks, and its JSON. */
export interface CheckedEntry {
  readonly accepted: AcceptedEntry;
  /** Returns the JSON to store, in parts: as received, or repaired. */
  json(): readonly Uint8Array[];
  /** Returns the bytes as received. */
  payload(): Uint8Array;
  /** Whether this entry is stored exactly as received, so that the bytes of its page may be stored as a whole. */
  readonly asReceived: boolean;
  /** The entry before its text was repaired, for the quarantine. */
  readonly original: QuarantineEntry | null;
  /** For a loaded result: its feed entry as pending, to be stored if PostgreSQL refuses the result. */
  readonly fallback?: CheckedEntry;
  /** For an entry that was delivered truncated. */
  readonly loading?: Loading;
}

/** The outcome for a truncated entry. `skipped`: it is already stored in full, or no wanted value is missing. */
export type Loading = 'resolved' | 'pending' | 'skipped';

/** A page after the checks: what to store, and what to quarantine. */
export interface CheckedPage {
  /** The JSON of the page, or of several consecutive pages that are committed together. */
  readonly pages: readonly PageJson[];
  /** Number of entries received, usable or not. */
  readonly items: number;
  readonly entries: readonly CheckedEntry[];
  readonly quarantine: readonly QuarantineEntry[];
}

/**
 * Checks every entry of a page. The order matters: validate, quarantine, and only then (in the store) deduplicate. The bytes
 * of the entries are checked only if the scan of the page found something suspicious.
 */
export function checkPage(page: RawPage): CheckedPage {
  const bytesOf = entrySource(page.body);
  const suspect = isSuspect(page);
  const entries: CheckedEntry[] = [];
  const quarantine: QuarantineEntry[] = [];
  page.items.forEach((item, index) => {
    const payload = () => bytesOf(index);
    const checked = checkEntry(item, suspect ? payload() : undefined);
    if (!checked.usable) {
      quarantine.push(rejectedEntry(checked, payload()));
      return;
    }
    const entry = checkedEntry(checked, payload, suspect ? repaired([payload()]) : undefined);
    entries.push(entry);
    if (entry.original !== null) quarantine.push(entry.original);
  });
  const items = page.items.length;
  return { pages: [{ items, json: [page.body] }], items, entries, quarantine };
}

/** Returns whether the body may contain values that PostgreSQL refuses, or that parsing hides. */
function isSuspect({ body, facts }: Pick<RawPage, 'body' | 'facts'>): boolean {
  return facts.hasSpecialEscapes || mayExceedLimits(facts, body.length) || !isUtf8(body);
}

/** Checks a single-run answer (interface 4.3) without its `rawOcrResult`. Returns null if it is unusable. */
export function checkRun(raw: RawRun): CheckedEntry | null {
  const { rawOcrResult: _, ...run } = raw.run;
  const received = withoutMember(raw.body, 'rawOcrResult');
  const checked = isSuspect(raw) ? checkEntry(run, raw.body, received) : checkEntry(run);
  return checked.usable ? checkedEntry(checked, () => raw.body, repaired(received)) : null;
}

/** Returns the bytes of an object with null in place of one member's value. */
function withoutMember(json: Uint8Array, left: string): readonly Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const [name, { start, end }] of allMembers(json)) {
    if (name !== left) continue;
    pieces.push(json.subarray(from, start), NULL);
    from = end;
  }
  return [...pieces, json.subarray(from)];
}

const NULL = Buffer.from('null');

/** Returns an entry and the result that was loaded for it. The store merges them if they have the same revision. */
function sourcesOf(entry: CheckedEntry): readonly CheckedEntry[] {
  const { fallback, accepted } = entry;
  if (fallback === undefined || fallback.accepted.run.revision !== accepted.run.revision) return [entry];
  return [fallback, { ...entry, accepted: { ...accepted, isAnswer: true } }];
}

/** Returns a batch of these entries. If they are all entries of the page as received, it has the bytes of the page itself. */
export function batchOf(
  entries: readonly CheckedEntry[],
  page: Pick<CheckedPage, 'pages' | 'items'> | null,
): EntryBatch {
  const whole = page !== null && entries.length === page.items && entries.every((entry) => entry.asReceived);
  const sources = entries.flatMap(sourcesOf);
  return { pages: whole ? page.pages : [pageOf(sources)], entries: sources.map((entry) => entry.accepted) };
}

function pageOf(entries: readonly CheckedEntry[]): PageJson {
  const items = entries.flatMap((entry, index) => (index === 0 ? entry.json() : [SEPARATOR, ...entry.json()]));
  return { items: entries.length, json: [BEGIN, ...items, END] };
}

const [BEGIN, SEPARATOR, END] = ['{"items":[', ',', ']}'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];

/** Marks a result that was requested with its markdown and has none. */
export function withoutMarkdown(entry: CheckedEntry): CheckedEntry {
  return { ...entry, accepted: { ...entry.accepted, markdownAbsent: true } };
}

export function withPending(entry: CheckedEntry, pending: PendingReason): CheckedEntry {
  return { ...entry, accepted: { ...entry.accepted, pending } };
}

/** Returns a quarantine row for an entry that PostgreSQL does not accept. */
export function refusedEntry({ accepted, payload }: CheckedEntry): QuarantineEntry {
  const { scanId, revision } = accepted.run;
  return {
    scanId,
    revision,
    reason: 'refused',
    detail: 'PostgreSQL does not accept a value of this entry',
    payload: payload(),
    state: 'open',
  };
}

type Usable = Extract<EntryCheck, { usable: true }>;

/** JSON to store in place of bytes that PostgreSQL may refuse. */
interface Repaired {
  readonly json: readonly Uint8Array[];
  readonly changed: boolean;
}

function repaired(received: readonly Uint8Array[]): Repaired {
  const json = received.map(repairJson);
  return { json, changed: json.some((piece, index) => piece !== received[index]) };
}

/** @param other the JSON to store if it is not that of the page */
function checkedEntry(checked: Usable, payload: () => Uint8Array, other?: Repaired): CheckedEntry {
  const { run, replaced, normalised, unknownFields } = checked;
  const changed = other?.changed === true;
  return {
    accepted: {
      run,
      replaced,
      normalised,
      unknownFields,
      repaired: changed || Object.keys(replaced).length > normalised.length,
      markdownAbsent: false,
      isAnswer: false,
      pending: null,
    },
    json: () => other?.json ?? [payload()],
    payload,
    asReceived: other === undefined,
    original: changed ? repairedOriginal(run, payload()) : null,
  };
}

function rejectedEntry(checked: Extract<EntryCheck, { usable: false }>, payload: Uint8Array): QuarantineEntry {
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
