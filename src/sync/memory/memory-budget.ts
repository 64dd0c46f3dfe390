import type { PassKind } from '../ports/index.js';
import { type LinkedSignal, linkedSignal } from '../waiting/linked-signal.js';

/** Priority of a download. `deferred`: a result that is pending because there was not enough memory with its page. */
export type Priority = 'deferred' | 'feed' | 'pending' | PassKind;

/**
 * A memory budget with priorities, for the pages and results of the whole process (promise 11). Downloads reserve the bytes
 * that they receive. When the budget is used up, the download of the highest priority may exceed it; the others that are
 * running are cancelled and tried again.
 */
export interface MemoryBudget {
  readonly bytes: number;
  /** Returns a ticket that ranks after earlier ones of the same priority, and before those of lower priorities. */
  enqueue(priority: Priority): MemoryTicket;
}

/** The rank of a page and its results, or of a single result. */
export interface MemoryTicket {
  /** Lower ranks are served first. */
  readonly rank: number;
  /**
   * Reserves the bytes that a download is expected to have. Returns null if they are not available.
   * @param kind `page`: the page itself; `result`: a single result, or one of those that belong to the page
   */
  tryReserve(expected: number, kind: DownloadKind, signal: AbortSignal): Reservation | null;
  /** Waits until the bytes are available and reserves them. Rejects when the signal aborts. */
  reserve(expected: number, kind: DownloadKind, signal: AbortSignal): Promise<Reservation>;
  /** Releases every reservation of the ticket. */
  close(): void;
}

export type DownloadKind = 'page' | 'result';

/** The bytes of one download, from its request until it is committed or discarded. */
export interface Reservation {
  /** Aborts with the signal of the request, and when the download is preempted. */
  readonly signal: AbortSignal;
  /** The bytes to reserve when a preempted download is tried again; null if it was not preempted. */
  readonly preemptedFor: number | null;
  readonly bytes: number;
  /** Reserves the bytes received so far. If they are not available, the download is preempted. */
  grow(bytes: number): void;
  /** Ends the download. Its reservation stays, with this size. */
  finish(bytes: number): void;
  release(): void;
}

/** First rank of each priority. History is last: its pages keep their memory while they wait for the feed to be idle. */
const FIRST_RANKS: Readonly<Record<Priority, number>> = {
  deferred: 0,
  feed: 1e12,
  pending: 2e12,
  backfill: 3e12,
  recent: 4e12,
  full: 5e12,
  history: 6e12,
};

/** Pages up to this size neither preempt nor are preempted, so that polls do not cancel long downloads. */
const SMALL_PAGE_BYTES = 1024 * 1024;
/**
 * Number of small pages of the maximum size that are granted regardless of other reservations: enough for two commits of one feed.
 * Its prefetched pages, and pages of other feeds, may have to wait.
 */
const SMALL_PAGES = 10;
/** Pages up to this size are always granted: a poll at the end of one feed must not wait for the pages of others. */
const POLL_BYTES = 16 * 1024;

/**
 * Decides whether a download may reserve this many bytes in total. Returns the downloads to preempt for it; null if it may not.
 *
 * A download is granted what fits into the budget. Half of the budget is for the pages of the feed and their results alone.
 * A download may exceed the budget only if nothing of its own page or of a higher rank can be committed and released instead.
 * So one download at a time exceeds the budget. This does not bound all reservations by the budget and one download: those that
 * have finished stay reserved until they are committed, even if they exceeded the budget, and some small pages do not count. Pure.
 */
function findPreempted(
  download: Download,
  total: number,
  reserved: readonly Download[],
  budget: number,
): readonly Download[] | null {
  const more = total - download.bytes;
  const smallPage = Math.min(SMALL_PAGE_BYTES, budget / 16);
  const isSmallPage = ({ isPage }: Download, bytes: number) => isPage && bytes <= smallPage;
  const isSmall = isSmallPage(download, total);
  const others = reserved.filter((other) => other !== download && other.bytes > 0);
  const [small, large] = partition(others, (other) => isSmallPage(other, other.bytes));
  const isAlwaysGranted = isSmall && (total <= POLL_BYTES || sumBytes(small) + total <= SMALL_PAGES * smallPage);
  const fits = sumBytes(reserved) + more <= budget;
  const fitsBesideFeed =
    isOfFeed(download) || sumBytes(reserved.filter((other) => !isOfFeed(other))) + more <= budget / 2;
  if (isAlwaysGranted || (fits && fitsBesideFeed)) return [];
  // A large download does not wait for small pages, since there are always some.
  const releasable = isSmall ? others : large;
  if (releasable.some((other) => isReleasedBefore(other, download))) return null;
  return large.filter(({ isRunning }) => isRunning);
}

function partition<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

/** Whether another download can be released without this one: it has a higher rank, or is an earlier result of the same page. */
function isReleasedBefore(other: Download, download: Download): boolean {
  if (other.rank !== download.rank) return other.rank < download.rank;
  return !other.isPage && !(other.isRunning && other.number > download.number);
}

function isOfFeed({ rank }: Pick<Download, 'rank'>): boolean {
  return rank >= FIRST_RANKS.feed && rank < FIRST_RANKS.pending;
}

function sumBytes(downloads: readonly Download[]): number {
  return downloads.reduce((total, { bytes }) => total + bytes, 0);
}

/**
 * Creates a budget. `reservedBytes`: the bytes that are reserved now.
 * @param onReleased called with the bytes of each reservation that is released
 */
export function createMemoryBudget(
  bytes: number,
  onReleased: (bytes: number) => void = () => {},
): MemoryBudget & { readonly reservedBytes: number } {
  const reserved = new Set<Download>();
  const waiting = new Set<WaitingRequest>();
  let tickets = 0;
  let requests = 0;

  const tryGrow = (download: Download, total: number): boolean => {
    const preempted = findPreempted(download, total, [...reserved], bytes);
    if (preempted === null) return false;
    for (const other of preempted) other.preempt(other.bytes);
    download.bytes = total;
    return true;
  };
  const retryWaiting = () => {
    // Many feeds may wait for the same number of bytes: once one of them is refused, so are those after it.
    const refused = new Set<string>();
    for (const { group, retry } of [...waiting].sort((a, b) => a.rank - b.rank)) {
      if (!refused.has(group) && !retry()) refused.add(group);
    }
  };
  const release = (download: Download) => {
    if (!reserved.delete(download)) return;
    onReleased(download.bytes);
    retryWaiting();
  };

  const tryReserve = ({ rank, expected, kind, signal }: DownloadRequest): Download | null => {
    requests += 1;
    const download = new Download(rank, requests, kind === 'page', signal, { tryGrow, retryWaiting, release });
    if (!tryGrow(download, expected)) return null;
    reserved.add(download);
    return download;
  };

  const waitForMemory = (request: DownloadRequest) =>
    new Promise<Download>((resolve, reject) => {
      const end = () => {
        waiting.delete(entry);
        request.signal.removeEventListener('abort', onAbort);
      };
      const onAbort = () => {
        end();
        reject(request.signal.reason);
      };
      const retry = () => {
        const download = tryReserve(request);
        if (download === null) return false;
        end();
        resolve(download);
        return true;
      };
      const { rank, kind, expected } = request;
      const entry = { rank, group: `${isOfFeed(request)} ${kind} ${expected}`, retry };
      waiting.add(entry);
      request.signal.addEventListener('abort', onAbort, { once: true });
    });

  const enqueue = (priority: Priority): MemoryTicket => {
    let closed = false;
    tickets += 1;
    const rank = FIRST_RANKS[priority] + tickets;
    return {
      rank,
      tryReserve: (expected, kind, signal) =>
        closed || signal.aborted ? null : tryReserve({ rank, expected, kind, signal }),
      reserve: async (expected, kind, signal) => {
        signal.throwIfAborted();
        const request = { rank, expected, kind, signal };
        return tryReserve(request) ?? (await waitForMemory(request));
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
      return sumBytes([...reserved]);
    },
    enqueue,
  };
}

interface DownloadRequest {
  readonly rank: number;
  readonly expected: number;
  readonly kind: DownloadKind;
  readonly signal: AbortSignal;
}

interface WaitingRequest {
  readonly rank: number;
  /** Equal for requests that differ only in their rank. */
  readonly group: string;
  /** Reserves the bytes if they are available now. Returns whether they were. */
  readonly retry: () => boolean;
}

/** The parts of the budget that its reservations use. */
interface BudgetActions {
  tryGrow(download: Download, total: number): boolean;
  retryWaiting(): void;
  release(download: Download): void;
}

class Download implements Reservation {
  bytes = 0;
  isRunning = true;
  preemptedFor: number | null = null;
  #linked: LinkedSignal | null = null;

  constructor(
    readonly rank: number,
    /** Ordinal number of the request. */
    readonly number: number,
    readonly isPage: boolean,
    private readonly requestSignal: AbortSignal,
    private readonly budget: BudgetActions,
  ) {}

  /** Linked when first used: a download that is refused needs no signal. */
  get signal(): AbortSignal {
    this.#linked ??= linkedSignal(this.requestSignal);
    if (this.preemptedFor !== null) this.#linked.abort();
    return this.#linked.signal;
  }

  grow(total: number): void {
    if (total <= this.bytes || this.preemptedFor !== null) return;
    if (!this.budget.tryGrow(this, total)) this.preempt(total);
  }

  preempt(bytesNeeded: number): void {
    this.preemptedFor ??= bytesNeeded;
    this.#linked?.abort();
  }

  finish(bytes: number): void {
    const shrinks = bytes < this.bytes;
    this.bytes = bytes;
    this.#end();
    if (shrinks) this.budget.retryWaiting();
  }

  release(): void {
    this.#end();
    this.budget.release(this);
  }

  #end(): void {
    this.isRunning = false;
    this.#linked?.unlink();
  }
}
