import { classifyError } from '../../core/errors.js';

/** Number of entries to request, so that pages fit the memory budget (promise 11). */
export interface PageLimit {
  readonly entries: number;
  /** Maximum size of the page, bytes: {@link LARGEST_PAGE_BYTES} or the budget; for a single entry {@link LARGEST_ENTRY_BYTES}. */
  readonly maxBytes: number;
  /** Expected size of the next page, bytes, by the previous one. */
  readonly expectedBytes: number;
  /** Called with the bytes that were reserved for a page that could not be read. */
  interrupted(bytes: number): void;
  /** Called with the error when a page of this many entries was too large. */
  tooLarge(entries: number, error: unknown): void;
  /** Called when a page was not too large. */
  fitted(page: FittingPage): void;
}

export interface FittingPage {
  /** Number of entries requested. */
  readonly requested: number;
  /** Number of entries received. */
  readonly received: number;
  /** Whether the cursor moved. Then more may follow, and filters may have shortened the page. */
  readonly moved: boolean;
  readonly bytes: number;
}

/**
 * Maximum size of a page with more than one entry, bytes. PostgreSQL has a statement in memory two or three times, and accepts
 * `jsonb` values up to 256 MiB. The results loaded for a page may have as many bytes again.
 */
export const LARGEST_PAGE_BYTES = 16 * 1024 * 1024;
/** Maximum size of a page with one entry, bytes. PostgreSQL does not accept larger values either. */
export const LARGEST_ENTRY_BYTES = 256 * 1024 * 1024;

/** Expected size of the first page, as a share of the maximum: 800 KiB, twice the size of 200 average runs. */
const FIRST_PAGE_SHARE = 1 / 20;
/** Expected size of a page, as a multiple of the previous size: a slightly larger page need not wait for memory meanwhile. */
const NEXT_PAGE_SHARE = 1.25;

/** Kinds of errors for responses that are too large for the memory. Fewer entries are requested after them. */
const OVERSIZED_KINDS: ReadonlySet<string> = new Set(['too_large', 'too_many_values', 'too_many_entries']);

/** Returns whether a response was too large for the memory, so that a page with fewer entries may fit. */
export function isOversized(error: unknown): boolean {
  return OVERSIZED_KINDS.has(classifyError(error).kind);
}

/** Number of small pages in a row after which the limit is doubled. A page is small if four of its size would be allowed. */
const PAGES_TO_GROW = 8;
const SMALL_PAGES_THAT_FIT = 4;

/** The limit, and the number of small pages in a row since it changed. */
interface LimitState {
  readonly entries: number;
  readonly smallPages: number;
}

/** Halves the limit after a page that was too large. Two tasks that fail at the same limit halve it only once. Pure. */
function halveLimit(state: LimitState, entries: number): LimitState {
  return entries > state.entries ? state : { entries: Math.max(1, Math.floor(entries / 2)), smallPages: 0 };
}

/**
 * Doubles the limit after enough small pages. A short page whose cursor did not move is at the end and does not count. A short
 * page before the end was shortened by filters and counts, since with such filters no page may ever be full. Pure.
 */
function growLimit(
  state: LimitState,
  { requested, received, moved, bytes }: FittingPage,
  maxEntries: number,
  budget: number,
): LimitState {
  if (state.entries === maxEntries || requested < state.entries || (received < requested && !moved)) return state;
  if (bytes * SMALL_PAGES_THAT_FIT > budget) return { ...state, smallPages: 0 };
  const smallPages = state.smallPages + 1;
  return smallPages < PAGES_TO_GROW
    ? { ...state, smallPages }
    : { entries: Math.min(maxEntries, state.entries * 2), smallPages: 0 };
}

/**
 * @param maxEntries maximum number of entries, as configured
 * @param budget maximum memory for all pages and results, bytes
 * @param onChanged called with each new limit, and with the error that lowered it
 */
export function createPageLimit(
  maxEntries: number,
  budget: number,
  onChanged: (entries: number, error?: unknown) => void = () => {},
): PageLimit {
  const pageBytes = Math.min(budget, LARGEST_PAGE_BYTES);
  let state: LimitState = { entries: maxEntries, smallPages: 0 };
  let expectedBytes = Math.ceil(pageBytes * FIRST_PAGE_SHARE);
  const setState = (next: LimitState, error?: unknown) => {
    const { entries } = state;
    state = next;
    if (next.entries !== entries) onChanged(next.entries, error);
  };
  return {
    get entries() {
      return state.entries;
    },
    get maxBytes() {
      return state.entries === 1 ? LARGEST_ENTRY_BYTES : pageBytes;
    },
    get expectedBytes() {
      return expectedBytes;
    },
    interrupted: (bytes) => {
      expectedBytes = Math.max(expectedBytes, bytes);
    },
    tooLarge: (entries, error) => setState(halveLimit(state, entries), error),
    fitted: (page) => {
      expectedBytes = Math.min(pageBytes, Math.ceil(page.bytes * NEXT_PAGE_SHARE));
      setState(growLimit(state, page, maxEntries, pageBytes));
    },
  };
}
