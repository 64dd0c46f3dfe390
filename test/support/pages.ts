import { textOf } from '../../src/core/json/ranges.js';
import { parseSkippingLargeValues } from '../../src/core/json/skip-large-values.js';
import { INTERFACE_FIELDS } from '../../src/core/run-fields.js';
import { checkPage } from '../../src/sync/page/check-page.js';
import type { CheckedPage, PolledPage } from '../../src/sync/page/page.js';
import type { AcceptedEntry, RawPage, RawRun } from '../../src/sync/ports/index.js';

/** A page as the client hands it to the engine. */
export function rawPage(body: string | Uint8Array, serviceDate: Date | null = null): RawPage {
  const bytes = withoutMark(Buffer.from(body));
  const { value, ...found } = parseSkippingLargeValues(bytes, WHOLE_PAGE, Number.POSITIVE_INFINITY);
  const { items, nextCursor } = value as { items: unknown[]; nextCursor?: string };
  return { body: bytes, items, ...found, nextCursor: nextCursor || null, serviceDate };
}

/** The client removes a byte order mark. */
export function withoutMark(received: Buffer): Buffer {
  return received.indexOf(BYTE_ORDER_MARK) === 0 ? received.subarray(BYTE_ORDER_MARK.length) : received;
}

const BYTE_ORDER_MARK = Buffer.from('\ufeff');
/** No value is skipped, so the memory is not limited either. */
const WHOLE_PAGE = { depth: 3, entries: 'items', isSkippable: () => false };
const WHOLE_RUN = { depth: 1, isSkippable: () => false };

/** A poll without entries, from the beginning of the feed to the cursor `next`. */
export function polledPage(over: Partial<PolledPage> = {}): PolledPage {
  const at = { cursor: null, since: null };
  const none = { cursorUnusable: false, isCached: false, items: 0, limit: 10, polls: [], polledAt: 0 };
  return { at, next: 'next', ...none, ...over };
}

/** A checked page of these bytes. */
export function checkedPage(body: string | Uint8Array, over: Partial<PolledPage> = {}): CheckedPage {
  const raw = rawPage(body);
  const times = { polledAt: 0, receivedAt: 0, wallClock: 0, serviceDate: null };
  return checkPage({ ...polledPage({ items: raw.items.length, ...over }), raw, times });
}

/** A single run as the client hands it to the engine. */
export function rawRun(body: string): RawRun {
  const bytes = Buffer.from(body);
  const { value, ...found } = parseSkippingLargeValues(bytes, WHOLE_RUN);
  return { body: bytes, run: value as RawRun['run'], ...found };
}

/** The fields of an entry as they are sent to PostgreSQL, without its document type. */
export function storedFields({ readField }: Pick<AcceptedEntry, 'readField'>): Record<string, unknown> {
  return Object.fromEntries(storedTexts({ readField }).map(([field, text]) => [field, JSON.parse(text)]));
}

/** The same as JSON texts, in the order of the interface. */
export function storedTexts({ readField }: Pick<AcceptedEntry, 'readField'>): readonly (readonly [string, string])[] {
  return INTERFACE_FIELDS.flatMap((field) => {
    const value = readField(field);
    return value === null ? [] : [[field, textOf(value.json, value)] as const];
  });
}
