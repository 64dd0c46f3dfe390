import { isUtf8 } from 'node:buffer';
import { type Checked, checkEntry } from './check-entry.js';
import { mayExceedLimits, mayUnderflow } from './json-limits.js';
import { elementRanges, memberRanges, type Range, textOf } from './json-ranges.js';
import type { AcceptedEntry, EntryBatch, FeedRun, PendingReason, QuarantineEntry, RawPage, RawRun } from './ports.js';
import { mayNeedRepair, repairText } from './storable-text.js';

/** An entry on its way to the store: what the checks found, and its JSON. */
export interface DraftEntry {
  readonly accepted: AcceptedEntry;
  /** JSON text to store; the page's own, repaired where it had to be. */
  text(): string;
  /** The bytes as received. */
  payload(): Uint8Array;
  /** Its delivery time as it is stored. */
  readonly deliveredAt: string | null;
  /** The page's own text may be stored as a whole, as far as this entry goes. */
  readonly asReceived: boolean;
  /** What it was before its text was repaired, for the quarantine. */
  readonly original: QuarantineEntry | null;
  /** For a result loaded in the entry's place: the entry itself, pending, should PostgreSQL refuse the result. */
  readonly fallback?: DraftEntry;
}

/** A page after the checks: what to store, and what to quarantine. */
export interface PageDraft {
  readonly page: RawPage;
  readonly entries: readonly DraftEntry[];
  readonly quarantine: readonly QuarantineEntry[];
}

/**
 * Checks every entry of a page. Order matters: validate, quarantine, and only then (in the store) deduplicate. The bytes
 * of entries are looked at only where a quick look at the page's text raised a suspicion.
 */
export function draftPage(page: RawPage): PageDraft {
  const bytesOf = entrySource(page);
  const suspect = isSuspect(page);
  const entries: DraftEntry[] = [];
  const quarantine: QuarantineEntry[] = [];
  page.items.forEach((item, index) => {
    const payload = () => bytesOf(index);
    const checked = checkEntry(item, suspect ? payload() : undefined);
    if (!checked.usable) {
      quarantine.push(rejectedEntry(checked, payload()));
      return;
    }
    const storable = suspect ? storableText(payload()) : undefined;
    const draft = draftEntry(checked, payload, storable);
    entries.push(draft);
    if (draft.original !== null) quarantine.push(draft.original);
  });
  return { page, entries, quarantine };
}

/** Whether the page may hold what PostgreSQL refuses, or what parsing hides. */
function isSuspect({ text, validUtf8, items }: Pick<RawPage, 'text' | 'validUtf8' | 'items'>): boolean {
  return !validUtf8 || mayNeedRepair(text) || mayExceedLimits(text) || (items.some(isZero) && mayUnderflow(text));
}

function isZero(item: unknown): boolean {
  return (item as { ocrConfidence?: unknown } | null)?.ocrConfidence === 0;
}

/** A draft of a single-run answer (interface 4.3), without its `rawOcrResult`; null where it is unusable. */
export function draftRun(raw: RawRun): DraftEntry | null {
  const { rawOcrResult: _, ...run } = raw.run;
  const received = withoutMember(raw.body, 'rawOcrResult');
  const checked = checkEntry(run, isSuspect({ ...raw, items: [run] }) ? received : undefined);
  return checked.usable ? draftEntry(checked, () => raw.body, storableText(received)) : null;
}

/** The object that the bytes are, less a member. */
function withoutMember(json: Uint8Array, left: string): Uint8Array {
  const members = [...memberRanges(json)].filter(([name]) => name !== left);
  const parts = members.flatMap(([name, { start, end }], index) => [
    Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`),
    json.subarray(start, end),
  ]);
  return Buffer.concat([...parts, Buffer.from(members.length === 0 ? '{}' : '}')]);
}

/** The result in place of the feed entry it belongs to, with the entry's delivery time where the answer has none. */
export function inPlaceOf(entry: DraftEntry, result: DraftEntry): DraftEntry {
  const { accepted } = result;
  const { deliveredAt } = entry;
  const fallback = withPending(entry, 'invalid_result');
  if (result.deliveredAt !== null || deliveredAt === null) return { ...result, fallback };
  const bad = 'deliveredAt' in accepted.replaced; // then its original goes to `extra`
  return {
    ...result,
    fallback,
    deliveredAt,
    accepted: {
      ...accepted,
      run: { ...accepted.run, deliveredAt: entry.accepted.run.deliveredAt },
      replaced: { ...accepted.replaced, deliveredAt },
      normalised: bad ? accepted.normalised : [...accepted.normalised, 'deliveredAt'],
    },
  };
}

/** The batch of these drafts; the page's own text where they are all of it. */
export function batchOf(drafts: readonly DraftEntry[], page: RawPage | null): EntryBatch {
  const whole = page !== null && drafts.length === page.items.length && drafts.every((draft) => draft.asReceived);
  return {
    json: whole ? page.text : `{"items":[${drafts.map((draft) => draft.text()).join()}]}`,
    entries: drafts.map((draft) => draft.accepted),
  };
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

/** JSON text to store in place of bytes that may not be storable as they are. */
interface StorableText {
  readonly text: string;
  readonly repaired: boolean;
}

function storableText(bytes: Uint8Array): StorableText {
  const received = textOfBytes(bytes);
  const text = repairText(received);
  return { text, repaired: text !== received || !isUtf8(bytes) };
}

/** @param other the text to store where it is not the page's own */
function draftEntry(checked: Usable, payload: () => Uint8Array, other?: StorableText): DraftEntry {
  const { run, deliveredAt, replaced, normalised } = checked;
  const repaired = other?.repaired === true || Object.keys(replaced).length > normalised.length;
  return {
    accepted: { run, replaced, normalised, repaired, pending: null },
    text: () => other?.text ?? textOfBytes(payload()),
    payload,
    deliveredAt,
    asReceived: other === undefined,
    original: other?.repaired === true ? repairedOriginal(run, payload()) : null,
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
function entrySource(page: RawPage): (index: number) => Uint8Array {
  let ranges: readonly Range[] | undefined;
  return (index) => {
    ranges ??= itemRanges(page.body);
    const range = ranges[index];
    if (range === undefined) throw new RangeError(`the page has no entry ${index}`);
    return page.body.subarray(range.start, range.end);
  };
}

function itemRanges(body: Uint8Array): readonly Range[] {
  const items = memberRanges(body).get('items');
  return items === undefined ? [] : elementRanges(body, items.start);
}

function textOfBytes(bytes: Uint8Array): string {
  return textOf(bytes, { start: 0, end: bytes.length });
}
