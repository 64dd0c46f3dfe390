import type { Clock } from '../../core/clock.js';
import { classifyError, type DatabaseKind, isValueRefused } from '../../core/errors.js';
import { batchOf, type CheckedEntry } from '../page/check-entries.js';
import { isOrdinary } from '../page/join-pages.js';
import type { CheckedPage, CommittedPage } from '../page/page.js';
import type {
  CommitOutcome,
  Committed,
  EntryBatch,
  FeedMove,
  FeedStore,
  Fenced,
  LeaseGrant,
  PageContent,
  PassMove,
  QuarantineEntry,
} from '../ports/index.js';
import { type Breaker, type PageQuality, pageQuality } from './breaker.js';
import { findRefused } from './find-refused.js';

/** Gives out pages in the order of the feed. */
export interface PageSource {
  /** Whether it gives out no more pages. */
  isStopped(): boolean;
  /** Resolves with the next page, or with pages that are committed together; null if no more are to be committed now. */
  take(): Promise<CheckedPage | null>;
  stop(): void;
}

/** The feed or the pass whose pages are written. */
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

type Outcome = Promise<CommittedPage | Fenced>;

/** A commit that was begun. */
interface BegunCommit {
  readonly isOrdinary: boolean;
  readonly result: Outcome;
}

/**
 * Commits pages in order. Consecutive pages that are complete can be committed together, and two commits of ordinary pages can
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
    private readonly context: { readonly store: FeedStore; readonly clock: Clock },
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Yields each page once it is committed. Once the source is stopped, it yields the pages whose commits were begun, and ends; errors
   * no longer count. If a commit or the source fails before, it does the same, and then throws the error.
   * @throws MostlyBad
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
        const settled = oldest?.result.then(
          () => 'settled',
          () => 'settled', // thrown when it is given out
        );
        const taken = this.#taking?.then(() => 'taken');
        const first = await Promise.race([settled, taken].filter((wait) => wait !== undefined));
        if (first === 'settled') yield* this.#givenOut();
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
      this.#taken = await this.source.take();
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
    const result = this.#store(page, this.#begun.at(-1)?.result ?? null);
    result.catch(() => {}); // thrown when it is given out
    this.#begun.push({ isOrdinary: isOrdinary(page), result });
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

  /**
   * Stores a page with its position in one commit, and releases its memory. If PostgreSQL refuses a value, the page is committed
   * with the entries that have such values in quarantine.
   * @param before the commit of the page before, which may still run
   */
  async #store(page: CheckedPage, before: Outcome | null): Outcome {
    const { target, signal } = this;
    const { store, clock } = this.context;
    const move = target.moveBy(page);
    const commitBegunAt = clock.monotonic();
    const send = (content: PageContent) => {
      target.onStep?.();
      return 'id' in move ? store.commitPass({ ...move, ...content }) : store.commitPage({ ...move, ...content });
    };
    /** @param unusable the entries that are not stored */
    const attempt = async (entries: readonly CheckedEntry[], unusable: readonly QuarantineEntry[]) => {
      // With the loaded results as they were before their text was repaired.
      const repaired = entries.flatMap(({ result }) => result?.original ?? []);
      const content = { batch: batchOf(entries), quarantine: [...unusable, ...repaired] };
      const quality = await this.#findQuality(page, content);
      await this.#assertMostlyUsable(quality);
      const outcome = await commitOverlapping(before, () => send(content));
      if (outcome.kind === 'fenced') return outcome;
      target.breaker.committed(quality);
      return committedPage(page, entries, outcome, { commitBegunAt, committedAt: clock.monotonic() });
    };
    const tryEntries = (batch: EntryBatch) => {
      target.onStep?.();
      return store.tryEntries(target.lease, batch);
    };
    try {
      return await attempt(page.entries, page.quarantine);
    } catch (error) {
      if (!isValueRefused(error) || page.entries.length === 0) throw error;
      const { storable, refused } = await findRefused(page.entries, signal, tryEntries);
      return await attempt(storable, [...page.quarantine, ...refused]);
    } finally {
      page.release();
    }
  }

  /** Returns how much of a page is unusable. Entries that are already in quarantine do not count. */
  async #findQuality({ items }: CheckedPage, { quarantine }: PageContent): Promise<PageQuality> {
    const { feed } = this.target.lease;
    const added = quarantine.length === 0 ? [] : await this.context.store.notYetQuarantined(feed, quarantine);
    return pageQuality(items, added);
  }

  /** @throws MostlyBad if most of the recent entries are unusable, unless an operator accepts it */
  async #assertMostlyUsable(quality: PageQuality): Promise<void> {
    const { lease, breaker } = this.target;
    try {
      breaker.check(quality);
    } catch (mostlyBad) {
      const { acceptsBadUntil } = await this.context.store.readStatus(lease.feed);
      if (acceptsBadUntil === null) throw mostlyBad;
    }
  }
}

/** Returns whether the commit of a page can begin before those that were begun have ended. */
function mayBegin(page: CheckedPage, begun: readonly BegunCommit[]): boolean {
  return begun.length === 0 || (isOrdinary(page) && begun.every((before) => before.isOrdinary));
}

/**
 * Commits a page while the page before is being committed, which PostgreSQL makes it wait for. If it arrives first it is fenced, and if
 * PostgreSQL does not let it wait it fails. Then it is sent once more, if the page before was committed. Settles after the page
 * before. Throws if the page before failed, unless this one was committed: then only the response to that one was lost.
 */
async function commitOverlapping(before: Outcome | null, commit: () => Promise<CommitOutcome>): Promise<CommitOutcome> {
  if (before === null) return commit();
  const [sent] = await Promise.allSettled([commit(), before]);
  if (sent.status === 'fulfilled' && sent.value.kind === 'committed') return sent.value;
  const { kind } = await before;
  const isTooEarly = sent.status === 'fulfilled' || NOT_EXECUTED.has(classifyError(sent.reason).kind);
  if (kind === 'committed' && isTooEarly) return commit();
  if (sent.status === 'rejected') throw sent.reason;
  return sent.value;
}

/** Kinds of failures of a commit that was not executed, perhaps only because another one runs. */
const NOT_EXECUTED: ReadonlySet<string> = new Set<DatabaseKind>([
  'serialization',
  'deadlock',
  'lock_timeout',
  'cancelled',
  'resources',
  'pool_exhausted',
]);

function committedPage(
  page: CheckedPage,
  entries: readonly CheckedEntry[],
  { kind, counts, asOf, endClaimed }: Committed,
  times: { readonly commitBegunAt: number; readonly committedAt: number },
): CommittedPage {
  const { at, next, cursorUnusable, isCached, items, limit, polls, polledAt, provenUpTo, monotonicTimeOf, ending } =
    page;
  const stored = new Set(counts.stored);
  const loadings = { resolved: 0, pending: 0, skipped: 0 };
  for (const { loading } of entries) if (loading !== undefined) loadings[loading] += 1;
  return {
    ...{ at, next, cursorUnusable, isCached, items, limit, polls, polledAt, provenUpTo, monotonicTimeOf, ending },
    ...{ kind, counts, asOf, endClaimed, loadings },
    ...times,
    deliveries: entries.flatMap(({ accepted: { run } }) =>
      stored.has(run.scanId) && run.deliveredAt !== null ? [monotonicTimeOf(run.deliveredAt)] : [],
    ),
    lacksMemory: entries.some(({ accepted }) => accepted.pending === 'no_memory'),
  };
}
