import { type Checked, checkEntry } from './check-entry.js';
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
  /** `text()` is the page's own text, untouched. */
  readonly asReceived: boolean;
  /** For a result loaded in the entry's place: the entry itself, pending, should PostgreSQL refuse the result. */
  readonly fallback?: DraftEntry;
}

/** A page after the checks: what to store, and what to quarantine. */
export interface PageDraft {
  readonly page: RawPage;
  readonly entries: readonly DraftEntry[];
  readonly quarantine: readonly QuarantineEntry[];
}

/** Checks every entry of a page. Order matters: validate, quarantine, and only then (in the store) deduplicate. */
export function draftPage(page: RawPage): PageDraft {
  const source = entrySource(page);
  const suspect = !page.validUtf8 || mayNeedRepair(page.text);
  const entries: DraftEntry[] = [];
  const quarantine: QuarantineEntry[] = [];
  page.items.forEach((item, index) => {
    const payload = () => source(index);
    const checked = checkEntry(item);
    if (!checked.usable) {
      quarantine.push(rejectedEntry(checked, payload()));
      return;
    }
    const draft = suspect ? draftSuspect(checked, payload) : draftEntry(checked, payload);
    entries.push(draft);
    if (!draft.asReceived) quarantine.push(repairedOriginal(draft));
  });
  return { page, entries, quarantine };
}

/** A draft of a single-run answer (interface 4.3), without its `rawOcrResult`; null where it is unusable. */
export function draftRun(raw: RawRun): DraftEntry | null {
  const checked = checkEntry(raw.run);
  if (!checked.usable) return null;
  const members = [...memberRanges(raw.body)].filter(([name]) => name !== 'rawOcrResult');
  const received = `{${members.map(([name, range]) => `${JSON.stringify(name)}:${textOf(raw.body, range)}`).join()}}`;
  const text = repairText(received);
  return draftEntry(checked, () => raw.body, { text, repaired: text !== received || !raw.validUtf8 });
}

/** The result in place of the feed entry it belongs to, with the entry's delivery time where the answer has none. */
export function inPlaceOf(entry: DraftEntry, result: DraftEntry): DraftEntry {
  const { accepted } = result;
  const { deliveredAt } = entry.accepted.run;
  const fallback = withPending(entry, 'invalid_result');
  if (accepted.run.deliveredAt !== null || deliveredAt === null) return { ...result, fallback };
  return {
    ...result,
    fallback,
    accepted: {
      ...accepted,
      run: { ...accepted.run, deliveredAt },
      replaced: { ...accepted.replaced, deliveredAt: deliveredAt.toISOString() },
      normalised: [...accepted.normalised, 'deliveredAt'],
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

/** @param other the text to store where it is not the page's own */
function draftEntry(
  checked: Usable,
  payload: () => Uint8Array,
  other?: { readonly text: string; readonly repaired: boolean },
): DraftEntry {
  const { run, replaced, normalised } = checked;
  const repaired = other?.repaired === true || Object.keys(replaced).length > normalised.length;
  return {
    accepted: { run, replaced, normalised, repaired, pending: null },
    text: () => other?.text ?? textOfBytes(payload()),
    payload,
    asReceived: other === undefined,
  };
}

/** An entry of a page that holds, somewhere, text that PostgreSQL cannot. Most of its entries are sound. */
function draftSuspect(checked: Usable, payload: () => Uint8Array): DraftEntry {
  const bytes = payload();
  const text = textOfBytes(bytes);
  const repaired = repairText(text);
  const sound = repaired === text && isUtf8(bytes);
  return sound ? draftEntry(checked, payload) : draftEntry(checked, payload, { text: repaired, repaired: true });
}

function rejectedEntry(checked: Extract<Checked, { usable: false }>, payload: Uint8Array): QuarantineEntry {
  const { scanId, revision, reason, detail } = checked;
  return { scanId, revision, reason, detail, payload, state: 'open' };
}

function repairedOriginal({ accepted, payload }: DraftEntry): QuarantineEntry {
  const { scanId, revision }: FeedRun = accepted.run;
  return {
    scanId,
    revision,
    reason: 'text',
    detail: 'the entry holds text that PostgreSQL cannot (U+0000, half a surrogate pair, or invalid UTF-8)',
    payload: payload(),
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

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
