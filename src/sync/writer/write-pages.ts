import { isNotExecuted, isValueRefused } from '../../core/errors.js';
import type { FeedContext } from '../context.js';
import { batchOf } from '../page/check-entries.js';
import { isOrdinary } from '../page/join-pages.js';
import { type CheckedPage, committedPage, type PageOutcome } from '../page/page.js';
import type { CommitOutcome, FeedMove, FeedStore, LeaseGrant, PageContent, PassMove } from '../ports/index.js';
import { type Breaker, type PageQuality, pageQuality } from './breaker.js';
import { findRefused, type SplitEntries } from './find-refused.js';

/** Gives out pages in the order of the feed. */
export interface PageSource {
  /** Whether it gives out no more pages. */
  isStopped(): boolean;
  /** Resolves with the next page, or with pages that are committed together; null if no more are to be committed now. */
  take(): Promise<CheckedPage | null>;
  stop(): void;
}

/** The feed or the pass whose pages are stored. */
export interface PageTarget {
  readonly lease: LeaseGrant;
  readonly breaker: Breaker;
  /** Maximum number of commits at the same time. In the database, the second one waits for the first. */
  readonly maxCommits: number;
  /** Called before each step that may take some time: a wait for a page, a statement. */
  onStep?(): void;
  /**
   * Returns how the commit of a page moves the position, and what it claims. Called once for each page, in order: what a page may
   * claim about freshness depends on those before it.
   */
  moveBy(page: CheckedPage): FeedMove | PassMove;
}

/** A commit that was begun. */
interface BegunCommit {
  readonly isOrdinary: boolean;
  readonly outcome: Promise<PageOutcome>;
  /** Resolves when it has succeeded or failed. */
  readonly settled: Promise<'settled'>;
}

/**
 * Commits pages in order. Consecutive pages that are complete can be committed together, and two commits of ordinary pages can
 * overlap: PostgreSQL parses the second while it writes the first. Any other page is committed after those before it were given out.
 */
export class PageWriter {
  /** The commits whose pages were not given out, in the order of the feed. */
  readonly #begun: BegunCommit[] = [];
  /** A page that was taken, and whose commit was not begun. */
  #taken: CheckedPage | null = null;
  /** Resolves when a page was taken, or none follows. */
  #taking: Promise<'taken'> | undefined;
  /** Whether the source has given out its last page. */
  #hasEnded = false;
  /** Thrown once the pages whose commits were begun are given out. */
  #readError: { readonly error: unknown } | null = null;
  #commitError: { readonly error: unknown } | null = null;

  constructor(
    private readonly source: PageSource,
    private readonly target: PageTarget,
    private readonly context: Pick<FeedContext, 'store' | 'clock'>,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Yields each page once it is committed. Once the source is stopped, it yields the pages whose commits were begun, and ends; errors
   * no longer count. If a commit or the source fails before, it does the same, and then throws the error.
   * @throws MostlyBad
   */
  async *write(): AsyncGenerator<PageOutcome, void, undefined> {
    const { source, target } = this;
    try {
      for (;;) {
        target.onStep?.();
        this.#beginTaken();
        if (this.#mayTake()) this.#taking ??= this.#take();
        const [oldest] = this.#begun;
        const events = [oldest?.settled, this.#taking].filter((event) => event !== undefined);
        if (events.length === 0) break;
        if ((await Promise.race(events)) === 'settled') yield* this.#giveOut();
      }
      if (this.#commitError !== null) throw this.#commitError.error;
      if (this.#readError !== null && !source.isStopped()) throw this.#readError.error;
    } finally {
      source.stop();
      await Promise.all(this.#begun.map(({ settled }) => settled));
    }
  }

  #mayTake(): boolean {
    const isFull = this.#taken !== null || this.#begun.length >= this.target.maxCommits;
    return !isFull && !this.#hasEnded && !this.source.isStopped();
  }

  // Functions of their own, because a page in a variable of the loop would stay in memory while the loop waits for the next one.
  async #take(): Promise<'taken'> {
    try {
      this.#taken = await this.source.take();
    } catch (error) {
      this.#readError = { error };
    }
    this.#hasEnded = this.#taken === null;
    this.#taking = undefined;
    return 'taken';
  }

  /** Begins the commit of the page that was taken, if it can begin now. */
  #beginTaken(): void {
    if (this.source.isStopped()) this.#taken = null;
    const page = this.#taken;
    if (page === null || !mayBegin(page, this.#begun)) return;
    this.#taken = null;
    const before = this.#begun.at(-1)?.outcome ?? null;
    const send = (statement: () => Promise<CommitOutcome>) => sendOverlapping(statement, before);
    const outcome = storePage(page, this.target, this.context, this.signal, send);
    const settle = () => 'settled' as const; // an error is thrown when the page is given out
    this.#begun.push({ isOrdinary: isOrdinary(page), outcome, settled: outcome.then(settle, settle) });
  }

  /** Yields the page of the oldest commit. */
  async *#giveOut() {
    try {
      const page = await this.#begun.shift()?.outcome;
      if (page !== undefined) yield page;
    } catch (error) {
      if (!this.source.isStopped()) this.#commitError = { error };
      this.source.stop();
    }
  }
}

/** Returns whether the commit of a page can begin before those that were begun have ended. */
function mayBegin(page: CheckedPage, begun: readonly BegunCommit[]): boolean {
  return begun.length === 0 || (isOrdinary(page) && begun.every((before) => before.isOrdinary));
}

/**
 * Sends the commit of a page while the page before is being committed, for which it waits in PostgreSQL. It is too early if it arrives
 * first and is fenced, or if PostgreSQL does not let it wait. Then it is sent once more, if the page before was committed. Settles after
 * the page before. Throws if the page before failed, unless this one was committed: then only the response to that one was lost.
 */
async function sendOverlapping(
  statement: () => Promise<CommitOutcome>,
  before: Promise<PageOutcome> | null,
): Promise<CommitOutcome> {
  if (before === null) return statement();
  const [sent] = await Promise.allSettled([statement(), before]);
  if (sent.status === 'fulfilled' && sent.value.kind === 'committed') return sent.value;
  const { kind } = await before;
  const isTooEarly = sent.status === 'fulfilled' || isNotExecuted(sent.reason);
  if (kind === 'committed' && isTooEarly) return statement();
  if (sent.status === 'rejected') throw sent.reason;
  return sent.value;
}

/**
 * Stores a page with its position in one commit, and releases its memory. If PostgreSQL refuses a value, the page is committed
 * with the entries that have such values in quarantine.
 * @param send sends the statement of a commit, perhaps more than once
 * @throws MostlyBad
 */
async function storePage(
  page: CheckedPage,
  target: PageTarget,
  { store, clock }: Pick<FeedContext, 'store' | 'clock'>,
  signal: AbortSignal,
  send: (statement: () => Promise<CommitOutcome>) => Promise<CommitOutcome>,
): Promise<PageOutcome> {
  const move = target.moveBy(page);
  const commitBegunAt = clock.monotonic();
  const commit = async (split: SplitEntries): Promise<PageOutcome> => {
    const content = contentOf(page, split);
    const quality = await findQuality(page, content, target, store);
    await assertMostlyUsable(quality, target, store);
    const outcome = await send(() => {
      target.onStep?.();
      return 'id' in move ? store.commitPass({ ...move, ...content }) : store.commitPage({ ...move, ...content });
    });
    if (outcome.kind === 'fenced') return outcome;
    target.breaker.committed(quality);
    return committedPage(page, split.storable, outcome, { commitBegunAt, committedAt: clock.monotonic() });
  };
  try {
    return await commit({ storable: page.entries, refused: [] });
  } catch (error) {
    if (!isValueRefused(error) || page.entries.length === 0) throw error;
    const split = await findRefused(page.entries, signal, (batch) => {
      target.onStep?.();
      return store.tryEntries(target.lease, batch);
    });
    return await commit(split);
  } finally {
    page.release();
  }
}

function contentOf(page: CheckedPage, { storable, refused }: SplitEntries): PageContent {
  // The results that were loaded for the entries, as they were before their text was repaired.
  const originals = storable.flatMap(({ result }) => result?.original ?? []);
  return { batch: batchOf(storable), quarantine: [...page.quarantine, ...refused, ...originals] };
}

/** Returns how much of a page is unusable. Entries that are already in quarantine do not count. */
async function findQuality(
  { items }: CheckedPage,
  { quarantine }: PageContent,
  { lease }: PageTarget,
  store: FeedStore,
): Promise<PageQuality> {
  const added = quarantine.length === 0 ? [] : await store.notYetQuarantined(lease.feed, quarantine);
  return pageQuality(items, added);
}

/** @throws MostlyBad if most of the recent entries are unusable, unless an operator accepts it */
async function assertMostlyUsable(
  quality: PageQuality,
  { lease, breaker }: PageTarget,
  store: FeedStore,
): Promise<void> {
  try {
    breaker.check(quality);
  } catch (mostlyBad) {
    const { acceptsBadUntil } = await store.readStatus(lease.feed);
    if (acceptsBadUntil === null) throw mostlyBad;
  }
}
