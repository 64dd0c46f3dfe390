import { linkedSignal } from './linked-signal.js';
import type { PageDraft } from './page-draft.js';
import type { Position } from './ports.js';
import type { FetchedPage } from './read-page.js';
import type { ResolvedPage } from './resolve-truncated.js';

/** A page with its truncated results loaded, ready to be committed. */
export interface CompletedPage extends FetchedPage {
  readonly resolved: ResolvedPage;
}

export interface ReadAheadOptions {
  readonly read: (at: Position, signal: AbortSignal) => Promise<FetchedPage>;
  readonly complete: (draft: PageDraft, signal: AbortSignal) => Promise<ResolvedPage>;
  /** Pages held at once, the one being committed included. */
  readonly maxPages: number;
  /** Bytes of pages held at once; one page is always allowed. */
  readonly maxBytes: number;
}

export interface ReadAhead {
  /**
   * The next page in order, once it is complete; asking for it gives back the room of the page before. Null after a page
   * that leads no further. Rejects with the failure of a page in its place; nothing comes after it.
   */
  next(): Promise<CompletedPage | null>;
  /** Ends what is under way. */
  stop(): void;
}

interface HeldPage {
  readonly bytes: number;
  readonly page: Promise<CompletedPage>;
}

/** Reads pages from a position on: while one is being committed the next are fetched and their results loaded. */
export function readAhead(start: Position, options: ReadAheadOptions, signal: AbortSignal): ReadAhead {
  const linked = linkedSignal(signal);
  const until = linked.signal;
  const held: HeldPage[] = [];
  const change = createChange();
  let handedOut = false;
  let finished = false;

  const hold = (bytes: number, page: Promise<CompletedPage>) => {
    page.catch(() => {}); // thrown where the page is asked for
    held.push({ bytes, page });
    change.happened();
  };
  const readAll = async () => {
    for (let at: Position | null = start; at !== null && !until.aborted; ) {
      const fetched: FetchedPage = await options.read(at, until);
      hold(fetched.draft.page.body.length, complete(fetched, options, until));
      at = leadsFurther(fetched) ? { ...fetched.at, cursor: fetched.next } : null;
      while (!until.aborted && !hasRoom(held, options)) await change.next();
    }
  };
  void readAll()
    .catch((error) => hold(0, Promise.reject(error)))
    .finally(() => {
      finished = true;
      change.happened();
    });

  return {
    next: async () => {
      if (handedOut) held.shift();
      handedOut = false;
      change.happened();
      while (held.length === 0 && !finished) await change.next();
      handedOut = held.length > 0;
      return held[0]?.page ?? null;
    },
    stop: () => {
      linked.abort();
      linked.unlink();
      change.happened();
    },
  };
}

async function complete(page: FetchedPage, options: ReadAheadOptions, until: AbortSignal): Promise<CompletedPage> {
  return { ...page, resolved: await options.complete(page.draft, until) };
}

/** After a page without entries the loop decides; a cursor that stands still leads nowhere. */
function leadsFurther(page: FetchedPage): boolean {
  return page.draft.page.items.length > 0 && page.next !== null && page.next !== page.at.cursor;
}

function hasRoom(held: readonly HeldPage[], { maxPages, maxBytes }: ReadAheadOptions): boolean {
  const bytes = held.reduce((sum, page) => sum + page.bytes, 0);
  return held.length < maxPages && bytes < maxBytes;
}

/** Lets one side wait until the other has changed something. */
function createChange() {
  let wake = () => {};
  let waiting = new Promise<void>((resolve) => {
    wake = resolve;
  });
  return {
    next: () => waiting,
    happened: () => {
      wake();
      waiting = new Promise<void>((resolve) => {
        wake = resolve;
      });
    },
  };
}
