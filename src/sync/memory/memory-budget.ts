/**
 * The memory for the pages and results of the whole process (promise 11). A download reserves the bytes that it is expected to
 * have before it is requested, and more if it turns out to be larger. They stay reserved until it is committed.
 *
 * **Who waits for whom.** There is one queue: first the downloads of the feeds, then those in the background, each by the age of
 * their tickets. A download waits while an earlier one is in the queue, or until enough bytes have been released. A response whose
 * download waits is not read further. Only polls never wait.
 *
 * **Why no download waits for ever.** The commit of a complete download never waits for memory: the results of its page are
 * loaded without waiting (`tryReserve`), and the earlier pages of its feed were complete before it was requested. So only waiting
 * downloads can block each other. If all downloads of a priority wait, the first of them is allowed to exceed the budget. Only one download
 * of the process does so at a time. It continues at once, so its bytes are released too.
 */
export interface MemoryBudget {
  readonly bytes: number;
  /**
   * Returns a ticket that ranks after earlier ones of the same priority.
   * @param whileWaiting is given each wait for memory
   */
  enqueue(priority: Priority, whileWaiting?: WhileWaiting): MemoryTicket;
}

/** `feed`: pages of the feeds, and the results that are loaded with them. `background`: pending results and passes. */
export type Priority = 'feed' | 'background';

export type WhileWaiting = (wait: Promise<void>) => Promise<void>;

/** The rank of a page and its results, or of a single result. */
export interface MemoryTicket {
  /** Lower ranks are served first. */
  readonly rank: number;
  /** Waits until the bytes are available and reserves them. Rejects when the signal aborts. */
  reserve(bytes: number, signal: AbortSignal): Promise<Reservation>;
  /**
   * Reserves the bytes if they are available now; otherwise returns null. Such a reservation does not wait to grow either.
   * @param most maximum size of all such reservations of the ticket, bytes
   */
  tryReserve(bytes: number, most?: number): Reservation | null;
  /** Releases every reservation of the ticket. */
  close(): void;
}

/** The bytes of one download, from its request until it is committed or discarded. */
export interface Reservation {
  readonly bytes: number;
  /** Whether it could not grow without waiting. */
  readonly isRefused: boolean;
  /** Shrinks at once. Waits for memory to grow, until the signal of `reserve` aborts; rejects if it is not allowed to wait. */
  resize(bytes: number): Promise<void>;
  release(): void;
}

/** Maximum size of a download that neither waits nor delays others, bytes: a poll at the end of a feed is smaller. */
const POLL_BYTES = 16 * 1024;
const FIRST_RANKS: Readonly<Record<Priority, number>> = { feed: 0, background: 1e12 };

/**
 * Creates a budget. `reservedBytes`: the bytes that are reserved now.
 * @param onReleased called with the bytes of each reservation that is released
 */
export function createMemoryBudget(
  bytes: number,
  onReleased: (bytes: number) => void = () => {},
): MemoryBudget & { readonly reservedBytes: number } {
  const pollBytes = Math.min(POLL_BYTES, bytes / 1024);
  const reserved = new Set<Download>();
  /** The downloads that wait, in the order of their ranks. */
  const queue: Waiting[] = [];
  let reservedBytes = 0;
  let exceeding: Download | null = null;
  let tickets = 0;

  const firstOf = (isFeed: boolean) => queue.find(({ download }) => download.isFeed === isFeed);
  const mayHave = (download: Download, total: number): boolean => {
    if (total <= Math.max(pollBytes, download.bytes) || download === exceeding) return true;
    const { isFeed, rank, bytes: own } = download;
    const isNext = (first: Waiting | undefined) => first === undefined || rank <= first.download.rank;
    if (isNext(queue[0]) && reservedBytes - own + total <= bytes) return true;
    const willBeReleased = (other: Download) =>
      other.isFeed === isFeed && other !== download && other.bytes > pollBytes && !other.isWaiting;
    return exceeding === null && isNext(firstOf(isFeed)) && ![...reserved].some(willBeReleased);
  };
  const setBytes = (download: Download, total: number) => {
    const grows = total > Math.max(pollBytes, download.bytes);
    reservedBytes += total - download.bytes;
    download.bytes = total;
    if (reservedBytes <= bytes) exceeding = null;
    else if (grows) exceeding = download;
  };
  const tryResize = (download: Download, total: number): boolean => {
    const shrinks = total < download.bytes;
    if (!mayHave(download, total)) return false;
    setBytes(download, total);
    if (shrinks) serveQueue();
    return true;
  };
  const serveQueue = () => {
    const next = [queue[0], firstOf(false)].find((first) => first && mayHave(first.download, first.total));
    if (next === undefined) return;
    setBytes(next.download, next.total);
    next.leave();
    next.resolve();
    serveQueue();
  };
  const waitInQueue = (download: Download, total: number, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const leave = () => {
        queue.splice(queue.indexOf(waiting), 1);
        download.isWaiting = false;
        signal.removeEventListener('abort', giveUp);
      };
      const giveUp = () => {
        leave();
        reject(signal.reason ?? new Error('the reservation was released'));
        serveQueue();
      };
      const waiting = { download, total, leave, resolve, giveUp };
      queue.splice(queue.findLastIndex((other) => other.download.rank <= download.rank) + 1, 0, waiting);
      download.isWaiting = true;
      signal.addEventListener('abort', giveUp, { once: true });
      serveQueue(); // all other downloads of its priority may have waited before
    });
  const release = (download: Download) => {
    queue.find((waiting) => waiting.download === download)?.giveUp();
    if (!reserved.delete(download)) return;
    const released = download.bytes;
    setBytes(download, 0);
    if (exceeding === download) exceeding = null;
    onReleased(released);
    serveQueue();
  };

  const enqueue: MemoryBudget['enqueue'] = (priority, whileWaiting = (wait) => wait) => {
    tickets += 1;
    const rank = FIRST_RANKS[priority] + tickets;
    const isFeed = priority === 'feed';
    let closed = false;
    const open = (resizeIt: (download: Download, total: number) => Promise<void>): Download => {
      const download: Download = {
        ...{ rank, isFeed, bytes: 0, isWaiting: false, isRefused: false },
        resize: async (total) => {
          if (reserved.has(download)) await resizeIt(download, total);
        },
        release: () => release(download),
      };
      reserved.add(download);
      return download;
    };
    const results: Download[] = [];
    const tryGrow = (result: Download, total: number, most: number) => {
      const others = results.reduce((sum, { bytes: held }) => sum + held, -result.bytes);
      result.isRefused = (total > result.bytes && others + total > most) || !tryResize(result, total);
      return !result.isRefused;
    };
    return {
      rank,
      reserve: async (expected, signal) => {
        signal.throwIfAborted();
        const download = open(async (self, total) => {
          if (!tryResize(self, total)) await whileWaiting(waitInQueue(self, total, signal));
        });
        await download.resize(expected).catch((error) => {
          download.release();
          throw error;
        });
        return download;
      },
      tryReserve: (expected, most = bytes) => {
        const result = open(async (self, total) => {
          if (!tryGrow(self, total, most)) throw new Error('there is no memory for the rest of the result');
        });
        if (!closed && tryGrow(result, expected, most)) {
          results.push(result);
          return result;
        }
        reserved.delete(result);
        return null;
      },
      close: () => {
        closed = true;
        for (const download of [...reserved]) if (download.rank === rank) download.release();
      },
    };
  };

  return {
    bytes,
    get reservedBytes() {
      return reservedBytes;
    },
    enqueue,
  };
}

interface Download extends Reservation {
  readonly rank: number;
  readonly isFeed: boolean;
  bytes: number;
  isWaiting: boolean;
  isRefused: boolean;
}

/** A download that waits for a reservation of this total size, bytes. */
interface Waiting {
  readonly download: Download;
  readonly total: number;
  leave(): void;
  resolve(): void;
  giveUp(): void;
}
