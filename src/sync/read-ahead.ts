import type { Room } from './byte-budget.js';
import { countJoined, joinPages } from './join-pages.js';
import { linkedSignal } from './linked-signal.js';
import type { DraftEntry, PageDraft } from './page-draft.js';
import type { Position } from './ports.js';
import { type FetchedPage, leadsFurther, type ReceivedPage } from './read-page.js';

/** A page with its truncated results loaded, as far as that was possible. */
export interface CompletedPage extends FetchedPage {
  /** Its entries, with what was loaded for them. */
  readonly completed: readonly DraftEntry[];
}

export interface ReadAheadOptions {
  readonly read: (room: Room, at: Position, signal: AbortSignal) => Promise<ReceivedPage>;
  /** Resolves once what is to be sent at once was sent: the request for the next page goes before the checks of this one. */
  readonly afterNextRequest: (signal: AbortSignal) => Promise<void>;
  readonly complete: (draft: PageDraft, room: Room, signal: AbortSignal) => Promise<readonly DraftEntry[]>;
  /** Told of each page with entries that is complete while those before it are not committed yet. */
  readonly announce: (draft: PageDraft) => void;
  /** Pages held at once, those being committed included. */
  readonly maxPages: number;
  /** So many are handed out as one at most. */
  readonly maxJoined: number;
  /** Makes room for the next page and its results. */
  readonly openRoom: () => Room;
}

export interface ReadAhead {
  /**
   * The next page in order, once it is complete, together with those behind it that are complete as well: while the store
   * is slower than the service. Asking for it gives back the bytes of the page before. Null after a page that leads no
   * further. Rejects with the failure of a page in its place; nothing comes after it.
   */
  next(): Promise<CompletedPage | null>;
  /** Ends what is under way, and gives everything back. */
  stop(): void;
}

interface HeldPage {
  readonly room: Room;
  readonly page: Promise<CompletedPage>;
  /** The page, once it is complete. */
  complete: CompletedPage | null;
}

/** Reads pages from a position on: while one is being committed the next are fetched and their results loaded. */
export function readAhead(start: Position, options: ReadAheadOptions, signal: AbortSignal): ReadAhead {
  const linked = linkedSignal(signal);
  const until = linked.signal;
  const held: HeldPage[] = [];
  const change = createChange();
  let handedOut = 0;
  let finished = false;

  const isBehindAnother = (entry: HeldPage) => !until.aborted && handedOut > 0 && held.indexOf(entry) >= handedOut;
  const hold = (room: Room, page: Promise<CompletedPage>) => {
    const entry: HeldPage = { room, page, complete: null };
    page.then(
      (completed) => {
        entry.complete = completed;
        if (isBehindAnother(entry) && completed.draft.entries.length > 0) options.announce(completed.draft);
      },
      () => {}, // thrown where the page is asked for
    );
    held.push(entry);
    change.happened();
  };
  const readAll = async () => {
    for (let at: Position | null = start; at !== null && !until.aborted; ) {
      const room = options.openRoom();
      const reading = options.read(room, at, until);
      hold(room, complete(reading, room, options, until));
      const received: ReceivedPage = await reading;
      at = leadsFurther(received) ? { ...received.at, cursor: received.next } : null;
      while (!until.aborted && held.length >= options.maxPages) await change.next();
    }
  };
  void readAll()
    .catch(() => {}) // thrown where the page is asked for
    .finally(() => {
      finished = true;
      change.happened();
    });

  return {
    next: async () => {
      for (const { room } of held.splice(0, handedOut)) room.close();
      handedOut = 0;
      change.happened();
      while (held.length === 0 && !finished) await change.next();
      const [first] = held;
      if (first === undefined) return null;
      handedOut = 1;
      const page = await first.page;
      const behind = completeBehind(held);
      handedOut = countJoined([page, ...behind], options.maxJoined);
      return joinPages(page, behind.slice(0, handedOut - 1));
    },
    stop: () => {
      linked.abort();
      linked.unlink();
      for (const { room } of held) room.close();
      change.happened();
    },
  };
}

/** Of the pages behind the first those that are complete, up to one that is not. */
function completeBehind(held: readonly HeldPage[]): CompletedPage[] {
  const pages = held.slice(1).map((entry) => entry.complete);
  const end = pages.indexOf(null);
  return pages.slice(0, end === -1 ? pages.length : end).filter((page) => page !== null);
}

async function complete(
  reading: Promise<ReceivedPage>,
  room: Room,
  options: ReadAheadOptions,
  until: AbortSignal,
): Promise<CompletedPage> {
  const received = await reading;
  if (leadsFurther(received)) await options.afterNextRequest(until);
  const page = received.check();
  return { ...page, completed: await options.complete(page.draft, room, until) };
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
