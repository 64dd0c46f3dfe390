import type { Clock } from '../../core/clock.js';
import { classifyError } from '../../core/errors.js';
import type { CheckedPage, CommittedPage } from '../page/page.js';
import type { CommitOutcome, Fenced } from '../ports/index.js';
import { isOrdinary, joinPages } from './join-pages.js';
import type { PageTarget } from './page-target.js';
import { storePage } from './store-page.js';

/** Gives out pages in the order of the feed. */
export interface PageSource {
  /** Whether it gives out no more pages. */
  isStopped(): boolean;
  /** Resolves with complete consecutive pages, as many as are committed together; none if no more are to be committed now. */
  take(maxJoined: number): Promise<readonly CheckedPage[]>;
  stop(): void;
}

/** A commit that was begun. */
interface BegunCommit {
  readonly isOrdinary: boolean;
  readonly result: Promise<CommittedPage | Fenced>;
  isSettled: boolean;
}

/**
 * Commits pages in order. Consecutive pages that are complete may be committed together, and two commits of ordinary pages may
 * overlap: PostgreSQL parses the second while it writes the first. Any other page is committed after those before it were given out.
 */
export class PageWriter {
  /** In the order of the feed. */
  readonly #begun: BegunCommit[] = [];
  /** A page that was taken, and whose commit was not begun. */
  #taken: CheckedPage | null = null;
  #taking: Promise<void> | null = null;
  #hasEnded = false;
  #readError: { readonly error: unknown } | null = null;
  #commitError: { readonly error: unknown } | null = null;

  constructor(
    private readonly source: PageSource,
    private readonly target: PageTarget,
    private readonly clock: Clock,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Yields each page once it is committed. Once the source is stopped, it yields the pages whose commits were begun, and ends; errors
   * no longer count. If a commit or the source fails before, it does the same, and then throws the error.
   */
  async *write(): AsyncGenerator<CommittedPage | Fenced, void, undefined> {
    const { source, target } = this;
    try {
      for (;;) {
        target.onStep?.();
        this.#beginTaken();
        if (this.#mayTake()) this.#taking ??= this.#take();
        const [oldest] = this.#begun;
        if (oldest === undefined && this.#taking === null) break;
        await Promise.race([oldest?.result.catch(() => {}), this.#taking].filter((wait) => wait != null));
        if (oldest?.isSettled) yield* this.#givenOut();
      }
      if (this.#commitError !== null) throw this.#commitError.error;
      if (this.#readError !== null && !source.isStopped()) throw this.#readError.error;
    } finally {
      source.stop();
      await Promise.allSettled(this.#begun.map(({ result }) => result));
    }
  }

  #mayTake(): boolean {
    const isFull = this.#taken !== null || this.#begun.length >= this.target.maxCommits;
    return !isFull && !this.#hasEnded && !this.source.isStopped();
  }

  // Functions of their own, because a page in a variable of the loop would stay in memory while the loop waits for the next one.
  async #take(): Promise<void> {
    try {
      this.#taken = joinPages(await this.source.take(this.target.maxJoined));
    } catch (error) {
      this.#readError = { error };
    }
    this.#hasEnded = this.#taken === null;
    this.#taking = null;
  }

  #beginTaken(): void {
    if (this.source.isStopped()) this.#taken = null;
    const page = this.#taken;
    if (page === null || !mayBegin(page, this.#begun)) return;
    this.#taken = null;
    this.#begun.push(beginCommit(page, this.#begun.at(-1) ?? null, this.target, this.clock, this.signal));
  }

  async *#givenOut() {
    try {
      const page = await this.#begun.shift()?.result;
      if (page !== undefined) yield page;
    } catch (error) {
      if (!this.source.isStopped()) this.#commitError = { error };
      this.source.stop();
    }
  }
}

/** Returns whether the commit of a page may begin before those that were begun have ended. */
function mayBegin(page: CheckedPage, begun: readonly BegunCommit[]): boolean {
  return begun.length === 0 || (isOrdinary(page) && begun.every((before) => before.isOrdinary));
}

function beginCommit(
  page: CheckedPage,
  before: BegunCommit | null,
  target: PageTarget,
  clock: Clock,
  signal: AbortSignal,
): BegunCommit {
  const overlapping = (commit: () => Promise<CommitOutcome>) => commitOverlapping(before, commit);
  const result = storePage(page, target, overlapping, clock, signal);
  const commit = { isOrdinary: isOrdinary(page), result, isSettled: false };
  const settle = () => {
    commit.isSettled = true;
  };
  result.then(settle, settle);
  return commit;
}

/**
 * Commits a page while the page before is being committed, which PostgreSQL makes it wait for. If it arrives first it is fenced, and if
 * PostgreSQL does not let it wait it fails. Then it is sent once more, if the page before was committed. Settles after the page
 * before. Throws if the page before failed, unless this one was committed: then only the answer to that one was lost.
 */
async function commitOverlapping(
  before: BegunCommit | null,
  commit: () => Promise<CommitOutcome>,
): Promise<CommitOutcome> {
  if (before === null) return commit();
  const [sent] = await Promise.allSettled([commit(), before.result]);
  if (sent.status === 'fulfilled' && sent.value.kind === 'committed') return sent.value;
  const { kind } = await before.result;
  if (kind === 'committed' && (sent.status === 'fulfilled' || needsRepeat(sent.reason))) return commit();
  if (sent.status === 'rejected') throw sent.reason;
  return sent.value;
}

/** Kinds of errors that a commit may have only because another one runs: a lock, a time limit or no free connection. */
const CAUSED_BY_WAITING = new Set([
  'serialization',
  'deadlock',
  'lock_timeout',
  'cancelled',
  'resources',
  'pool_exhausted',
]);

/** Returns whether a commit was not executed, and may succeed alone. */
function needsRepeat(error: unknown): boolean {
  return CAUSED_BY_WAITING.has(classifyError(error).kind);
}
