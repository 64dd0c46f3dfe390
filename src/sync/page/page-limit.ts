import { classifyError } from '../../core/errors.js';

/** Number of entries to request, so that pages fit the memory budget (promise 11). */
export interface PageLimit {
  readonly entries: number;
  /** Maximum size of the page, bytes: {@link LARGEST_PAGE_BYTES} or the budget; for a single entry as much as can be stored. */
  readonly maxBytes: number;
  /** Expected size of the next page, bytes: that of the page before. */
  readonly expectedBytes: number;
  /** A page of this many entries was too large, as the error says. */
  tooLarge(entries: number, error: unknown): void;
  /** A page fitted. */
  fitted(page: FittingPage): void;
}

export interface FittingPage {
  /** Number of entries requested. */
  readonly asked: number;
  /** Number of entries received. */
  readonly received: number;
  /** Whether the cursor moved: then more may follow, and filters may have shortened the page. */
  readonly moved: boolean;
  readonly bytes: number;
}

/**
 * A page of more than one entry, bytes. PostgreSQL holds a statement two or three times, and takes no `jsonb` value of over
 * 256 MiB; the results loaded for a page may be as many bytes again.
 */
export const LARGEST_PAGE_BYTES = 16 * 1024 * 1024;
/** A page of one entry, bytes; PostgreSQL takes no larger value either. */
export const LARGEST_ENTRY_BYTES = 256 * 1024 * 1024;

/** Kinds of errors after which fewer entries are requested: the answer was more than can be held. */
const TOO_MUCH: ReadonlySet<string> = new Set(['too_large', 'too_many_values', 'too_many_entries']);

/** Whether an answer was more than can be held, so that a page with fewer entries may fit. */
export function isTooMuch(error: unknown): boolean {
  return TOO_MUCH.has(classifyError(error).kind);
}

/** Number of easy pages in a row that double the limit again. A page is easy if it fits four times into what is allowed. */
const EASY_PAGES = 8;
const EASILY = 4;

/** The limit, and the number of easy pages in a row since it changed. */
export interface LimitState {
  readonly entries: number;
  readonly easy: number;
}

/** Pure. Two readers that fail at the same limit halve it once. */
export function halved(state: LimitState, entries: number): LimitState {
  return entries > state.entries ? state : { entries: Math.max(1, Math.floor(entries / 2)), easy: 0 };
}

/**
 * Pure. A short page whose cursor did not move is at the end and says nothing about the size of other pages. A short page
 * before the end was shortened by filters and counts: under such filters no page may ever be full.
 */
export function regrown(
  state: LimitState,
  { asked, received, moved, bytes }: FittingPage,
  most: number,
  budget: number,
): LimitState {
  if (state.entries === most || asked < state.entries || (received < asked && !moved)) return state;
  if (bytes * EASILY > budget) return { ...state, easy: 0 };
  const easy = state.easy + 1;
  return easy < EASY_PAGES ? { ...state, easy } : { entries: Math.min(most, state.entries * 2), easy: 0 };
}

/**
 * @param most entries at most, as set
 * @param budget bytes of all pages and results held at once
 * @param onChanged called with each new limit, and with the error that lowered it
 */
export function createPageLimit(
  most: number,
  budget: number,
  onChanged: (entries: number, error?: unknown) => void = () => {},
): PageLimit {
  const pageBytes = Math.min(budget, LARGEST_PAGE_BYTES);
  let state: LimitState = { entries: most, easy: 0 };
  let expectedBytes = 0;
  const become = (next: LimitState, error?: unknown) => {
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
    tooLarge: (entries, error) => become(halved(state, entries), error),
    fitted: (page) => {
      expectedBytes = page.bytes;
      become(regrown(state, page, most, pageBytes));
    },
  };
}

/** The same limit, but this many entries first, unless they are more than can be held. */
export function askingFirst(entries: number, limit: PageLimit): PageLimit {
  let first: number | null = entries;
  return {
    get entries() {
      return first ?? limit.entries;
    },
    get maxBytes() {
      return limit.maxBytes;
    },
    get expectedBytes() {
      return limit.expectedBytes;
    },
    tooLarge: (asked, error) => {
      if (first === null) limit.tooLarge(asked, error);
      first = null;
    },
    fitted: limit.fitted,
  };
}
