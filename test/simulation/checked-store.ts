import type { Clock } from '../../src/core/clock.js';
import { startAt } from '../../src/sync/page/read-page.js';
import type {
  CommitOutcome,
  EntryBatch,
  LeaseGrant,
  MoveReason,
  PageCommit,
  PassCommit,
  PassKind,
  Position,
  QuarantineEntry,
} from '../../src/sync/ports/index.js';
import { MAX_JOINED_PAGES } from '../../src/sync/prefetch/join-pages.js';
import { batchTexts } from '../support/pages.js';
import type { Coverage, Happening } from './coverage.js';
import { type Delivery, isListed, isTestMode, POISON, resultOf } from './delivery.js';
import { ModelFailure } from './model-failure.js';
import { type ModelPass, unfinishedPass } from './model-passes.js';
import { type ModelRow, ModelStore } from './model-store.js';
import type { SimulatedService } from './simulated-service.js';
import type { Traits } from './traits.js';

/** A broken promise. The message names the promise and the cause. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
}

export const FEED = 'default';

/** A model store that checks the promises within each commit. */
export class CheckedStore extends ModelStore {
  /** Number of commits from a position other than the feed's, although their process held the lease. */
  misplaced = 0;
  /** Inserted or updated scans. A caller clears it before it watches for writes. */
  readonly written = new Set<string>();
  broken: BrokenPromise | null = null;
  readonly #listed: Delivery[] = [];
  /** Deliveries that are neither stored nor in quarantine yet. Stored ones remain stored unless commits are lost. */
  #awaited: Delivery[] = [];

  constructor(
    private readonly clock: Clock,
    private readonly service: SimulatedService,
    private readonly traits: Pick<Traits, 'filters' | 'markdown'>,
    private readonly coverage: Coverage,
  ) {
    super(clock.now, { monotonic: clock.monotonic, checkpointEveryMs: 10_000 });
    service.onDelivery = (delivery) => {
      if (!isListed(delivery, traits.filters)) return;
      this.#listed.push(delivery);
      this.#awaited.push(delivery);
    };
  }

  // These overrides are synchronous, unlike the calls that await them: nothing can run between a write and its check.

  override async tryEntries(_lease: LeaseGrant, batch: EntryBatch): Promise<void> {
    requireStorable(batch);
  }

  protected override writePage(commit: PageCommit): CommitOutcome {
    const { lease, from, to } = commit;
    const before = this.feeds.get(lease.feed);
    const [epoch, cursor, complete] = [before?.epoch, before?.cursor, before?.completeAsOf ?? null];
    if (epoch === lease.epoch && cursor !== from) this.misplaced += 1;
    return this.#checked(
      'page commits',
      commit.batch,
      () => super.writePage(commit),
      () => {
        if (epoch !== lease.epoch) this.#fail(`a commit of epoch ${lease.epoch} landed in epoch ${epoch}`);
        if (cursor !== from) this.#fail(`a commit from ${from} landed on ${cursor}`);
        if (to === '') this.#fail('an empty cursor was stored');
        if (from !== to) this.#isServed(from, to);
        const now = this.feeds.get(lease.feed)?.completeAsOf ?? null;
        if (complete !== null && (now === null || now < complete)) this.#fail('freshness went back');
      },
    );
  }

  protected override writeResults(
    lease: LeaseGrant,
    batch: EntryBatch,
    quarantine: readonly QuarantineEntry[],
  ): CommitOutcome {
    return this.#withoutMoving('result commits', lease, batch, () => super.writeResults(lease, batch, quarantine));
  }

  protected override writePass(commit: PassCommit): CommitOutcome {
    const { lease, batch, id, finished } = commit;
    const pass = this.feeds.get(lease.feed)?.passes.find((row) => row.id === id);
    const outcome = this.#withoutMoving('pass commits', lease, batch, () => super.writePass(commit));
    if (outcome.kind === 'committed' && finished && pass !== undefined) this.#hasReadItsRange(pass);
    return outcome;
  }

  override snapshot(): () => void {
    const restore = super.snapshot();
    return () => {
      this.coverage['lost commits'] += 1;
      restore();
      this.#awaited = [...this.#listed];
    };
  }

  override rewind(name: string, cursor: string | null): void {
    this.coverage.rewinds += 1;
    super.rewind(name, cursor);
  }

  /** Returns whether the feed was read to its end, and no history pass or backfill is unfinished. */
  hasReadAll(): boolean {
    const feed = this.feeds.get(FEED);
    const isUnfinished = (kind: PassKind) => feed !== undefined && unfinishedPass(feed, kind) !== undefined;
    return feed !== undefined && feed.endReachedAt !== null && !isUnfinished('history') && !isUnfinished('backfill');
  }

  override async movePosition(lease: LeaseGrant, from: string | null, to: Position, reason: MoveReason) {
    const moved = await super.movePosition(lease, from, to, reason);
    if (moved) this.coverage['cursors left'] += 1;
    if (moved && from !== null && !this.service.refused.has(from)) this.#fail(`${from} was left and never refused`);
    this.#nothingIsPassed();
    return moved;
  }

  /** Returns the virtual time up to which the feed claims to be complete. */
  completeAsOf(): number {
    return this.#virtual(this.feeds.get(FEED)?.completeAsOf);
  }

  /** Returns deliveries that should be stored but are not. Only passes (`sweeping`) find those before cursors. */
  missing(sweeping: boolean): readonly Delivery[] {
    this.#awaited = this.#awaited.filter((delivery) => !this.#has(delivery));
    const since = this.feeds.get(FEED)?.startSince ?? null;
    return this.#awaited.filter(
      (delivery) => this.service.isPromised(delivery, since) && (sweeping || !delivery.behind),
    );
  }

  /** Returns all deliveries that are not stored, whether they should be or not. */
  notKept(): readonly Delivery[] {
    return this.#awaited.filter((delivery) => !this.#has(delivery));
  }

  #withoutMoving(what: Happening, lease: LeaseGrant, batch: EntryBatch, write: () => CommitOutcome): CommitOutcome {
    const feed = this.feeds.get(lease.feed);
    const [epoch, cursor, complete] = [feed?.epoch, feed?.cursor, feed?.completeAsOf];
    return this.#checked(what, batch, write, () => {
      const now = this.feeds.get(lease.feed);
      if (epoch !== lease.epoch) this.#fail(`a write of epoch ${lease.epoch} landed in epoch ${epoch}`);
      if (now?.cursor !== cursor) this.#fail('the cursor was moved by what is not a page of the feed');
      if (now?.completeAsOf !== complete) this.#fail('freshness was changed by what is not a page of the feed');
    });
  }

  #checked(what: Happening, batch: EntryBatch, write: () => CommitOutcome, check: () => void): CommitOutcome {
    requireStorable(batch);
    const before = new Map(batch.entries.map(({ run }) => [run.scanId, { ...this.rows.get(run.scanId) }]));
    const outcome = write();
    if (outcome.kind === 'fenced') {
      this.coverage['fenced commits'] += 1;
      for (const [scanId, old] of before) this.#isUntouched(scanId, old);
      return outcome;
    }
    this.coverage[what] += 1;
    for (const scanId of outcome.counts.stored) this.written.add(scanId);
    for (const [scanId, old] of before) this.#isBetter(scanId, old);
    check();
    this.#nothingIsPassed();
    this.#freshnessIsTrue();
    return outcome;
  }

  #isUntouched(scanId: string, old: Partial<ModelRow>): void {
    const row = this.rows.get(scanId);
    if (row?.revision !== old.revision || row?.pending !== old.pending) this.#fail(`a fenced write changed ${scanId}`);
  }

  /** Checks that the revision did not decrease, the same revision lost nothing, and a complete row has its full result. */
  #isBetter(scanId: string, old: Partial<ModelRow>): void {
    const row = this.rows.get(scanId);
    if (row === undefined) {
      this.#fail(`${scanId} was committed and is not there`);
      return;
    }
    if (row.revision < (old.revision ?? 0)) this.#fail(`the revision of ${scanId} went back`);
    if (row.revision === old.revision) {
      if (old.pending === null && row.pending !== null) this.#fail(`${scanId} was complete and became pending`);
      if (old.data != null && row.data !== old.data) this.#fail(`the data of ${scanId} changed within a revision`);
      if (old.markdown != null && row.markdown !== old.markdown) this.#fail(`the markdown of ${scanId} was lost`);
    }
    const expected = JSON.stringify(resultOf(row)).slice(0, -1);
    if (row.data !== null && !row.data.startsWith(expected)) this.#fail(`${scanId} holds the data of another revision`);
    // A row with a delivery time includes its feed entry.
    if (row.deliveredAt !== null && row.partnerName === null) this.#fail(`${scanId} lost the partner of its entry`);
    if (row.deliveredAt !== null && row.testMode !== isTestMode(row)) this.#fail(`${scanId} lost its test mode`);
    if (row.pending !== null) return;
    if (row.status === 'completed' && row.data === null) this.#fail(`${scanId} is called complete and has no data`);
    if (!this.traits.markdown || row.markdown !== null) return;
    if (!this.service.runs.isBare(scanId, row.revision))
      this.#fail(`${scanId} is called complete and lacks its markdown`);
    else if (!row.markdownAbsent) this.#fail(`${scanId} has no markdown, which is not remembered`);
  }

  #isServed(from: string | null, to: string | null): void {
    let lost: Delivery | null = null;
    for (const deliveries of this.service.ways(from, to, MAX_JOINED_PAGES)) {
      const missing = deliveries.find((delivery) => !this.#has(delivery));
      if (missing === undefined) return;
      lost ??= missing;
    }
    if (lost === null) this.#fail(`the cursor went from ${from} to ${to}, which no page leads to`);
    else this.#fail(`${told(lost)} was passed and not kept`);
  }

  /** Checks that nothing before the feed's position is missing. */
  #nothingIsPassed(): void {
    const feed = this.feeds.get(FEED);
    if (feed === undefined) return;
    const since = feed.resumeSince ?? feed.startSince;
    const place = this.service.placeOf(startAt({ cursor: feed.cursor, since }));
    for (const delivery of this.missing(false)) {
      if (delivery.key <= place) this.#fail(`the cursor ${feed.cursor} has passed ${told(delivery)}`);
    }
  }

  #freshnessIsTrue(): void {
    const completeAsOf = this.completeAsOf();
    for (const delivery of this.missing(false)) {
      if (delivery.dated <= completeAsOf) {
        this.#fail(`complete as of ${completeAsOf}, but ${told(delivery)} of ${delivery.dated} is missing`);
      }
    }
  }

  /** Checks that a finished pass has stored every delivery in its range that was visible when it began. */
  #hasReadItsRange({ kind, since, until, begunAt }: ModelPass): void {
    this.coverage[`${kind} passes`] += 1;
    for (const delivery of this.missing(true)) {
      const isPromised = this.service.isPromised(delivery, since) && this.service.isUpTo(delivery, until);
      if (isPromised && delivery.visibleFrom <= this.#virtual(begunAt)) {
        this.#fail(`the ${kind} pass is finished, but ${told(delivery)} is missing`);
      }
    }
  }

  #has({ scanId, revision, usable, identity }: Delivery): boolean {
    if ((this.rows.get(scanId)?.revision ?? 0) >= revision) return true;
    return !usable && this.quarantine.has(`${FEED}/${identity}`);
  }

  #virtual(time: number | null | undefined): number {
    return time == null ? Number.NEGATIVE_INFINITY : time - (this.clock.now() - this.clock.monotonic());
  }

  /** Records the first broken promise, since the engine would handle a thrown error. */
  #fail(message: string): void {
    this.broken ??= new BrokenPromise(message);
  }
}

function told({ scanId, revision }: Delivery): string {
  return `revision ${revision} of ${scanId}`;
}

function requireStorable(batch: EntryBatch): void {
  if (batchTexts(batch).some((text) => text.includes(POISON))) throw new ModelFailure('data', 'data');
}
