import { type LinkedSignal, linkedSignal } from './linked-signal.js';
import type { PassKind } from './ports.js';

/** Who asks for bytes. `deferred`: results that a page left for want of memory. */
export type Line = 'deferred' | 'feed' | 'pending' | PassKind;

/** Payload bytes held at once over the whole process (promise 11). Half of them are for the feed's own pages alone. */
export interface ByteBudget {
  readonly bytes: number;
  /** Bytes held now. */
  readonly held: number;
  /** A place behind those that were opened earlier in the same line, and before the lines after it. */
  open(line: Line): Room;
}

/** The place of a page and its results, or of one result, among those that hold bytes. */
export interface Room {
  /** Lower comes first. */
  readonly rank: number;
  /**
   * Begins a download of this size, as far as it is known. Null where it does not fit: bytes must be given back first.
   * The body of a page that results belong to is `page`, every other one is not.
   */
  tryHold(expected: number, what: 'page' | 'result', signal: AbortSignal): Holding | null;
  /** The same, once it fits. Rejects when the signal aborts. */
  hold(expected: number, what: 'page' | 'result', signal: AbortSignal): Promise<Holding>;
  /** Gives back everything. */
  close(): void;
}

/** The bytes of one download, from its beginning until nobody needs them any more. */
export interface Holding {
  /** Aborts with the signal it was begun with, and when the download has to give way to an earlier one. */
  readonly signal: AbortSignal;
  /** Set once it had to give way: the bytes for which it needs room. It is no failure; begin again. */
  readonly needs: number | null;
  readonly bytes: number;
  /** It holds this many bytes now. */
  arrived(bytes: number): void;
  /** The download is over, and this is what stays. */
  finished(bytes: number): void;
  release(): void;
}

/** First numbers of the lines. The history comes last: its pages keep their memory while they wait for the feed to be idle. */
const LINES: Readonly<Record<Line, number>> = {
  deferred: 0,
  feed: 1e12,
  pending: 2e12,
  backfill: 3e12,
  recent: 4e12,
  full: 5e12,
  history: 6e12,
};
/** A page of this size neither waits nor makes others give way: a poll must not end a long download. */
const SMALL_PAGE_BYTES = 1024 * 1024;

/**
 * While there is room every download goes on. When it is used up the first in line goes on alone, beyond the budget if
 * need be, and the others give way; but not while something of its own page, or of an earlier one, can be committed
 * and given back instead. So at most the budget and one download are held, and somebody always goes on.
 * @param onReleased told of bytes that were given back
 */
export function createByteBudget(bytes: number, onReleased: (bytes: number) => void = () => {}): ByteBudget {
  const smallPage = Math.min(SMALL_PAGE_BYTES, bytes / 16);
  const holdings = new Set<Held>();
  const waiting = new Set<Waiter>();
  let opened = 0;
  let begun = 0;
  const held = () => sum([...holdings]);
  const heldBesideFeed = () => sum([...holdings].filter(isBesideFeed));
  const isSmallPage = (holding: Held) => holding.isPage && holding.bytes <= smallPage;

  /** Nothing comes before it that will be given back. */
  const isFirst = (mine: Held) =>
    [...holdings].every((other) => {
      if (other === mine || other.bytes === 0 || isSmallPage(other) || other.rank > mine.rank) return true;
      return other.rank === mine.rank && (other.isPage || (other.running && other.number > mine.number));
    });

  const fits = (mine: Held, more: number) =>
    held() + more <= bytes && (!isBesideFeed(mine) || heldBesideFeed() + more <= bytes / 2);

  const admits = (mine: Held, total: number) => {
    if ((mine.isPage && total <= smallPage) || fits(mine, total - mine.bytes)) return true;
    if (!isFirst(mine)) return false;
    for (const other of holdings) {
      if (other !== mine && other.running && other.bytes > 0 && !isSmallPage(other)) other.giveWay(other.bytes);
    }
    return true;
  };

  const freed = () => {
    for (const waiter of [...waiting].sort((a, b) => a.rank - b.rank)) waiter.look();
  };
  const released = (holding: Held) => {
    if (!holdings.delete(holding)) return;
    onReleased(holding.bytes);
    freed();
  };

  const begin = (rank: number, { expected, what, signal }: Wanted): Held | null => {
    begun += 1;
    const holding = new Held(rank, begun, what === 'page', signal, { admits, freed, released });
    if (admits(holding, expected)) {
      holding.bytes = expected;
      holdings.add(holding);
      return holding;
    }
    holding.release();
    return null;
  };

  const wait = (rank: number, wanted: Wanted) =>
    new Promise<Held>((resolve, reject) => {
      const over = () => {
        waiting.delete(waiter);
        wanted.signal.removeEventListener('abort', aborted);
      };
      const aborted = () => {
        over();
        reject(wanted.signal.reason);
      };
      const look = () => {
        const holding = begin(rank, wanted);
        if (holding === null) return;
        over();
        resolve(holding);
      };
      const waiter: Waiter = { rank, look };
      waiting.add(waiter);
      wanted.signal.addEventListener('abort', aborted, { once: true });
    });

  const open = (line: Line): Room => {
    let closed = false;
    opened += 1;
    const rank = LINES[line] + opened;
    return {
      rank,
      tryHold: (expected, what, signal) => (closed || signal.aborted ? null : begin(rank, { expected, what, signal })),
      hold: async (expected, what, signal) => {
        signal.throwIfAborted();
        const wanted = { expected, what, signal };
        return begin(rank, wanted) ?? (await wait(rank, wanted));
      },
      close: () => {
        closed = true;
        for (const holding of [...holdings]) if (holding.rank === rank) holding.release();
      },
    };
  };

  return {
    bytes,
    get held() {
      return held();
    },
    open,
  };
}

function sum(holdings: readonly Held[]): number {
  return holdings.reduce((total, holding) => total + holding.bytes, 0);
}

function isBesideFeed({ rank }: Held): boolean {
  return rank < LINES.feed || rank >= LINES.pending;
}

interface Wanted {
  readonly expected: number;
  readonly what: 'page' | 'result';
  readonly signal: AbortSignal;
}

interface Waiter {
  readonly rank: number;
  /** Begins, where there is room now. */
  readonly look: () => void;
}

interface BudgetRules {
  admits(holding: Held, total: number): boolean;
  /** There is more room than before. */
  freed(): void;
  released(holding: Held): void;
}

/** Holds bytes by the rules of the budget that made it. */
class Held implements Holding {
  bytes = 0;
  running = true;
  needs: number | null = null;
  #linked: LinkedSignal | null = null;

  constructor(
    readonly rank: number,
    /** In the order of their beginning. */
    readonly number: number,
    readonly isPage: boolean,
    private readonly begunWith: AbortSignal,
    private readonly rules: BudgetRules,
  ) {}

  /** Linked when it is first asked for: one that does not fit never is. */
  get signal(): AbortSignal {
    this.#linked ??= linkedSignal(this.begunWith);
    if (this.needs !== null) this.#linked.abort();
    return this.#linked.signal;
  }

  arrived(total: number): void {
    if (total <= this.bytes || this.needs !== null) return;
    if (this.rules.admits(this, total)) this.bytes = total;
    else this.giveWay(total);
  }

  giveWay(needs: number): void {
    this.needs ??= needs;
    this.#linked?.abort();
  }

  finished(bytes: number): void {
    const less = bytes < this.bytes;
    this.bytes = bytes;
    this.#end();
    if (less) this.rules.freed();
  }

  release(): void {
    this.#end();
    this.rules.released(this);
  }

  #end(): void {
    this.running = false;
    this.#linked?.unlink();
  }
}
