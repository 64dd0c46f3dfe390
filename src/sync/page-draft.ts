import { isUtf8 } from 'node:buffer';
import { allMembers, elementRanges, memberRanges, type Range } from '../json/ranges.js';
import { type Checked, checkEntry } from './check-entry.js';
import { mayExceedLimits, mayUnderflow } from './json-limits.js';
import type {
  AcceptedEntry,
  EntryBatch,
  FeedRun,
  PageJson,
  PendingReason,
  QuarantineEntry,
  RawPage,
  RawRun,
} from './ports.js';
import { mayNeedRepair, repairJson } from './storable-text.js';

/** An entry on its way to the store: what the checks found, and its JSON. */
export interface DraftEntry {
  readonly accepted: AcceptedEntry;
  /** The JSON to store, in pieces: what was received, repaired where it had to be. */
  json(): readonly Uint8Array[];
  /** The bytes as received. */
  payload(): Uint8Array;
  /** The page's own bytes may be stored as a whole, as far as this entry goes. */
  readonly asReceived: boolean;
  /** What it was before its text was repaired, for the quarantine. */
  readonly original: QuarantineEntry | null;
  /** For a loaded result: its entry, pending. Stored alone if PostgreSQL refuses the result. */
  readonly fallback?: DraftEntry;
  /** What became of an entry that came truncated. `skipped`: stored in full already, or nothing wanted is missing. */
  readonly loading?: Loading;
}

export type Loading = 'resolved' | 'pending' | 'skipped';

/** A page after the checks: what to store, and what to quarantine. */
export interface PageDraft {
  /** What was received: a page, or several in a row that are to be committed together. */
  readonly pages: readonly PageJson[];
  /** Entries received, whatever they are. */
  readonly items: number;
  readonly entries: readonly DraftEntry[];
  readonly quarantine: readonly QuarantineEntry[];
}

/**
 * Checks every entry of a page. Order matters: validate, quarantine, and only then (in the store) deduplicate. The bytes
 * of entries are looked at only where a quick look at the page raised a suspicion, or where it was not parsed whole.
 */
export function draftPage(page: RawPage): PageDraft {
  const bytesOf = entrySource(page.body);
  const suspect = isSuspect(page, page.items);
  const entries: DraftEntry[] = [];
  const quarantine: QuarantineEntry[] = [];
  page.items.forEach((item, index) => {
    const payload = () => bytesOf(index);
    const checked = checkEntry(item, suspect ? payload() : undefined);
    if (!checked.usable) {
      quarantine.push(rejectedEntry(checked, payload()));
      return;
    }
    const draft = draftEntry(checked, payload, suspect ? repaired([payload()]) : undefined);
    entries.push(draft);
    if (draft.original !== null) quarantine.push(draft.original);
  });
  const items = page.items.length;
  return { pages: [{ items, json: [page.body] }], items, entries, quarantine };
}

/** Whether the body may hold what PostgreSQL refuses, or what parsing hides. */
function isSuspect({ body, emptied }: Pick<RawPage, 'body' | 'emptied'>, items: readonly unknown[]): boolean {
  if (emptied || !isUtf8(body)) return true;
  const text = latin1(body);
  return mayNeedRepair(text) || mayExceedLimits(text) || (items.some(isZero) && mayUnderflow(text));
}

/** What is looked for is ASCII, which Latin-1 shows as it is and much sooner. */
function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

function isZero(item: unknown): boolean {
  return (item as { ocrConfidence?: unknown } | null)?.ocrConfidence === 0;
}

/** A draft of a single-run answer (interface 4.3), without its `rawOcrResult`; null where it is unusable. */
export function draftRun(raw: RawRun): DraftEntry | null {
  const { rawOcrResult: _, ...run } = raw.run;
  const received = withoutMember(raw.body, 'rawOcrResult');
  const checked = isSuspect(raw, [run]) ? checkEntry(run, raw.body, received) : checkEntry(run);
  return checked.usable ? draftEntry(checked, () => raw.body, repaired(received)) : null;
}

/** The object that the bytes are, with null in place of a member's value. */
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

/** An entry and the result that was loaded for it, which the store unites where they are of one revision. */
function sourcesOf(draft: DraftEntry): readonly DraftEntry[] {
  const { fallback, accepted } = draft;
  if (fallback === undefined || fallback.accepted.run.revision !== accepted.run.revision) return [draft];
  return [fallback, { ...draft, accepted: { ...accepted, isAnswer: true } }];
}

/** The batch of these entries; the page's own bytes where they are all of it, as it came. */
export function batchOf(drafts: readonly DraftEntry[], page: Pick<PageDraft, 'pages' | 'items'> | null): EntryBatch {
  const whole = page !== null && drafts.length === page.items && drafts.every((draft) => draft.asReceived);
  const sources = drafts.flatMap(sourcesOf);
  return { pages: whole ? page.pages : [pageOf(sources)], entries: sources.map((draft) => draft.accepted) };
}

function pageOf(drafts: readonly DraftEntry[]): PageJson {
  const items = drafts.flatMap((draft, index) => (index === 0 ? draft.json() : [SEPARATOR, ...draft.json()]));
  return { items: drafts.length, json: [BEGIN, ...items, END] };
}

const [BEGIN, SEPARATOR, END] = ['{"items":[', ',', ']}'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];

/** A result that was asked for with its markdown and has none. */
export function withoutMarkdown(draft: DraftEntry): DraftEntry {
  return { ...draft, accepted: { ...draft.accepted, markdownAbsent: true } };
}

export function withPending(draft: DraftEntry, pending: PendingReason): DraftEntry {
  return { ...draft, accepted: { ...draft.accepted, pending } };
}

/** A quarantine row for an entry that PostgreSQL would not take. */
export function refusedEntry({ accepted, payload }: DraftEntry): QuarantineEntry {
  const { scanId, revision } = accepted.run;
  return {
    scanId,
    revision,
    reason: 'refused',
    detail: 'PostgreSQL does not take a value of this entry',
    payload: payload(),
    state: 'open',
  };
}

type Usable = Extract<Checked, { usable: true }>;

/** JSON to store in place of bytes that may not be storable as they are. */
interface Repaired {
  readonly json: readonly Uint8Array[];
  readonly changed: boolean;
}

function repaired(received: readonly Uint8Array[]): Repaired {
  const json = received.map(repairJson);
  return { json, changed: json.some((piece, index) => piece !== received[index]) };
}

/** @param other what to store where it is not the page's own */
function draftEntry(checked: Usable, payload: () => Uint8Array, other?: Repaired): DraftEntry {
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

function rejectedEntry(checked: Extract<Checked, { usable: false }>, payload: Uint8Array): QuarantineEntry {
  const { scanId, revision, reason, detail } = checked;
  return { scanId, revision, reason, detail, payload, state: 'open' };
}

function repairedOriginal({ scanId, revision }: FeedRun, payload: Uint8Array): QuarantineEntry {
  return {
    scanId,
    revision,
    reason: 'text',
    detail: 'the entry holds text that PostgreSQL cannot (U+0000, half a surrogate pair, or invalid UTF-8)',
    payload,
    state: 'repaired',
  };
}

/** The bytes of entry n, found when first asked for: most pages never need them. */
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
