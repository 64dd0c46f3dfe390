import type { Clock } from '../../src/core/clock.js';
import { MAX_JOINED_PAGES } from '../../src/sync/page/join-pages.js';
import { startAt } from '../../src/sync/page/read-page.js';
import type {
  CommitOutcome,
  EntryBatch,
  LeaseGrant,
  PageCommit,
  PassCommit,
  PassKind,
  Position,
  QuarantineEntry,
} from '../../src/sync/ports/index.js';
import { storedTexts } from '../support/pages.js';
import type { Coverage, SimulationEvent } from './coverage.js';
import { type Delivery, isListed, isTestMode, POISON, resultOf } from './delivery.js';
import { ModelFailure } from './model-failure.js';
import { type ModelPass, unfinishedPass } from './model-passes.js';
import { type ModelRow, ModelStore } from './model-store.js';
import { isTestModeAssumed } from './model-union.js';
import type { SimulatedService } from './simulated-service.js';
import type { Traits } from './traits.js';

/** A broken promise. The message names the promise and the cause. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
}

/** A model store that checks the promises within each commit. */
export class CheckedStore extends ModelStore {
  /**
   * Cursors from which pages were sent while the feed had another position, although their process held the lease. A commit that
   * overtakes the one before is repeated, and then no longer misplaced.
   */
  readonly misplaced = new Set<string | null>();
  /** Inserted or updated scans. A caller clears it before it watches for writes. */
  readonly written = new Set<string>();
  broken: BrokenPromise | null = null;
  /** By feed. */
  readonly #deliveries = new Map<string, Deliveries>();

  /** @param services by the names of their feeds */
  constructor(
    private readonly clock: Clock,
    private readonly services: ReadonlyMap<string, SimulatedService>,
    private readonly traits: Pick<Traits, 'filters' | 'markdown'>,
    private readonly coverage: Coverage,
  ) {
    super(clock.now, { monotonic: clock.monotonic, checkpointEveryMs: 10_000 });
    for (const [feed, service] of services) {
      const deliveries: Deliveries = { listed: [], awaited: [] };
      this.#deliveries.set(feed, deliveries);
      service.onDelivery = (delivery) => {
        if (!isListed(delivery, traits.filters)) return;
        deliveries.listed.push(delivery);
        deliveries.awaited.push(delivery);
      };
    }
  }

  // These overrides are synchronous, unlike the calls that await them: nothing can run between a write and its check.

  override async tryEntries(_lease: LeaseGrant, batch: EntryBatch): Promise<void> {
    requireStorable(batch);
  }

  protected override writePage(commit: PageCommit): CommitOutcome {
    const { lease, from, to } = commit;
    const before = this.feeds.get(lease.feed);
    const [epoch, cursor, complete] = [before?.epoch, before?.cursor, before?.completeAsOf ?? null];
    if (epoch === lease.epoch && cursor !== from) this.misplaced.add(from);
    else if (this.misplaced.delete(from)) this.coverage['overtaking commits'] += 1;
    return this.#writeChecked(
      'page commits',
      lease,
      commit.batch,
      () => super.writePage(commit),
      () => {
        if (epoch !== lease.epoch) this.#fail(`a commit of epoch ${lease.epoch} was accepted in epoch ${epoch}`);
        if (cursor !== from) this.#fail(`a commit from cursor ${from} was accepted at cursor ${cursor}`);
        if (to === '') this.#fail('an empty cursor was stored');
        if (from !== to) this.#checkServed(lease.feed, from, to);
        const now = this.feeds.get(lease.feed)?.completeAsOf ?? null;
        if (complete !== null && (now === null || now < complete)) this.#fail('the freshness decreased');
      },
    );
  }

  protected override writeResults(
    lease: LeaseGrant,
    batch: EntryBatch,
    quarantine: readonly QuarantineEntry[],
  ): CommitOutcome {
    return this.#writeWithoutMoving('result commits', lease, batch, () => super.writeResults(lease, batch, quarantine));
  }

  protected override writePass(commit: PassCommit): CommitOutcome {
    const { lease, batch, id, end } = commit;
    const pass = this.feeds.get(lease.feed)?.passes.find((row) => row.id === id);
    // The feed continues where its history ended, and its freshness is unknown until then.
    const continues = end !== 'no' && pass?.kind === 'history' && this.feeds.get(lease.feed)?.cursor === null;
    const outcome = continues
      ? this.#writeChecked(
          'pass commits',
          lease,
          batch,
          () => super.writePass(commit),
          () => {},
        )
      : this.#writeWithoutMoving('pass commits', lease, batch, () => super.writePass(commit));
    if (outcome.kind === 'committed' && outcome.endClaimed && pass !== undefined)
      this.#checkPassRange(lease.feed, pass);
    return outcome;
  }

  override snapshot(): () => void {
    const restore = super.snapshot();
    return () => {
      this.coverage['lost commits'] += 1;
      restore();
      for (const deliveries of this.#deliveries.values()) deliveries.awaited = [...deliveries.listed];
    };
  }

  override rewind(name: string, cursor: string | null): void {
    this.coverage.rewinds += 1;
    super.rewind(name, cursor);
  }

  /** Returns whether the feed was read to its end, and no history pass or backfill is unfinished. */
  hasReadAll(name: string): boolean {
    const feed = this.feeds.get(name);
    const isUnfinished = (kind: PassKind) => feed !== undefined && unfinishedPass(feed, kind) !== undefined;
    return feed !== undefined && feed.endReachedAt !== null && !isUnfinished('history') && !isUnfinished('backfill');
  }

  override async movePosition(lease: LeaseGrant, from: string | null, to: Position) {
    const moved = await super.movePosition(lease, from, to);
    if (moved) this.coverage['abandoned cursors'] += 1;
    if (moved && from !== null && !this.#serviceOf(lease.feed).refused.has(from))
      this.#fail(`the engine gave up cursor ${from}, which was never rejected`);
    this.#checkNothingSkipped(lease.feed);
    return moved;
  }

  /** Returns the virtual time up to which the feed claims to be complete. */
  completeAsOf(feed: string): number {
    return this.#virtual(this.feeds.get(feed)?.completeAsOf);
  }

  /** Returns deliveries that should be stored but are not. Only passes (`reconciling`) find those before cursors. */
  missing(feed: string, reconciling: boolean): readonly Delivery[] {
    const since = this.feeds.get(feed)?.startSince ?? null;
    const service = this.#serviceOf(feed);
    return this.notStored(feed).filter(
      (delivery) => service.isPromised(delivery, since) && (reconciling || !delivery.behind),
    );
  }

  /** Returns all deliveries that are neither stored nor in quarantine, whether they should be or not. */
  notStored(feed: string): readonly Delivery[] {
    const deliveries = this.#deliveries.get(feed) as Deliveries;
    deliveries.awaited = deliveries.awaited.filter((delivery) => !this.#isStored(delivery));
    return deliveries.awaited;
  }

  #serviceOf(feed: string): SimulatedService {
    return this.services.get(feed) as SimulatedService;
  }

  #writeWithoutMoving(
    event: SimulationEvent,
    lease: LeaseGrant,
    batch: EntryBatch,
    write: () => CommitOutcome,
  ): CommitOutcome {
    const feed = this.feeds.get(lease.feed);
    const [epoch, cursor, complete] = [feed?.epoch, feed?.cursor, feed?.completeAsOf];
    return this.#writeChecked(event, lease, batch, write, () => {
      const now = this.feeds.get(lease.feed);
      if (epoch !== lease.epoch) this.#fail(`a write of epoch ${lease.epoch} was accepted in epoch ${epoch}`);
      if (now?.cursor !== cursor) this.#fail('a write other than a page moved the cursor');
      if (now?.completeAsOf !== complete) this.#fail('a write other than a page changed the freshness');
    });
  }

  #writeChecked(
    event: SimulationEvent,
    { feed }: LeaseGrant,
    batch: EntryBatch,
    write: () => CommitOutcome,
    check: () => void,
  ): CommitOutcome {
    requireStorable(batch);
    const before = new Map(batch.map(({ run }) => [run.scanId, { ...this.rows.get(run.scanId) }]));
    const outcome = write();
    if (outcome.kind === 'fenced') {
      this.coverage['fenced commits'] += 1;
      for (const [scanId, old] of before) this.#checkUntouched(scanId, old);
      return outcome;
    }
    this.coverage[event] += 1;
    for (const scanId of outcome.counts.stored) this.written.add(scanId);
    for (const [scanId, old] of before) this.#checkNothingLost(feed, scanId, old);
    check();
    this.#checkNothingSkipped(feed);
    this.#checkFreshness(feed);
    return outcome;
  }

  #checkUntouched(scanId: string, old: Partial<ModelRow>): void {
    const row = this.rows.get(scanId);
    if (row?.revision !== old.revision || row?.pending !== old.pending) this.#fail(`a fenced write changed ${scanId}`);
  }

  /** Checks that the revision did not decrease, the same revision lost nothing, and a complete row has its full result. */
  #checkNothingLost(feed: string, scanId: string, old: Partial<ModelRow>): void {
    const row = this.rows.get(scanId);
    if (row === undefined) {
      this.#fail(`${scanId} was committed but is not stored`);
      return;
    }
    if (row.revision < (old.revision ?? 0)) this.#fail(`the revision of ${scanId} decreased`);
    if (row.revision === old.revision) {
      if (old.pending === null && row.pending !== null && row.pending !== 'test_mode_unknown')
        this.#fail(`${scanId} was complete and became pending`);
      if (old.data != null && row.data !== old.data) this.#fail(`the data of ${scanId} changed within a revision`);
      if (old.markdown != null && row.markdown !== old.markdown) this.#fail(`the markdown of ${scanId} was lost`);
    }
    const expected = JSON.stringify(resultOf(row)).slice(0, -1);
    if (row.data !== null && !row.data.startsWith(expected)) this.#fail(`${scanId} holds the data of another revision`);
    // A row with a delivery time includes its feed entry.
    if (row.deliveredAt !== null && row.partnerName === null) this.#fail(`${scanId} lost the partner of its entry`);
    this.#checkTestMode(feed, row, old);
    if (row.pending !== null) return;
    if (row.status === 'completed' && row.data === null) this.#fail(`${scanId} is marked complete but has no data`);
    if (!this.traits.markdown || row.markdown !== null) return;
    if (!this.#serviceOf(feed).runs.hasNoMarkdown(scanId, row.revision))
      this.#fail(`${scanId} is marked complete but lacks its markdown`);
    else if (!row.markdownAbsent) this.#fail(`${scanId} has no markdown but is not marked as having none`);
  }

  /** Checks that the test mode is that of the highest revision that has stated it, and that the single run was asked if in doubt. */
  #checkTestMode(feed: string, row: ModelRow, old: Partial<ModelRow>): void {
    const { scanId, revision, testModeRevision: stated, deliveredAt, pending } = row;
    const { runs, downloads } = this.#serviceOf(feed);
    if (row.testMode !== (stated !== null && isTestMode({ revision: stated })))
      this.#fail(`${scanId} has another test mode than its revision ${stated} states`);
    if ((stated ?? 0) < (old.testModeRevision ?? 0)) this.#fail(`${scanId} lost the test mode of a later revision`);
    if (deliveredAt !== null && stated !== revision && !runs.omitsTestMode(scanId, revision))
      this.#fail(`${scanId} lost its test mode`);
    if (!isTestModeAssumed(row)) return;
    this.coverage['assumed test modes'] += 1;
    if (pending === null && !downloads.includes(scanId))
      this.#fail(`the test mode of ${scanId} was assumed, and not asked for`);
  }

  #checkServed(feed: string, from: string | null, to: string | null): void {
    let lost: Delivery | null = null;
    for (const deliveries of this.#serviceOf(feed).paths(from, to, MAX_JOINED_PAGES)) {
      const missing = deliveries.find((delivery) => !this.#isStored(delivery));
      if (missing === undefined) return;
      lost ??= missing;
    }
    if (lost === null) this.#fail(`the cursor moved from ${from} to ${to}, but no served pages lead there`);
    else this.#fail(`the cursor passed ${describeDelivery(lost)}, which is missing`);
  }

  /** Checks that nothing before the feed's position is missing. */
  #checkNothingSkipped(name: string): void {
    const feed = this.feeds.get(name);
    if (feed === undefined) return;
    const since = feed.resumeSince ?? feed.startSince;
    const position = this.#serviceOf(name).positionOf(startAt({ cursor: feed.cursor, since }));
    for (const delivery of this.missing(name, false)) {
      if (delivery.key <= position)
        this.#fail(`the cursor ${feed.cursor} is beyond ${describeDelivery(delivery)}, which is missing`);
    }
  }

  #checkFreshness(feed: string): void {
    const completeAsOf = this.completeAsOf(feed);
    for (const delivery of this.missing(feed, false)) {
      if (delivery.dated <= completeAsOf) {
        this.#fail(`complete as of ${completeAsOf}, but ${describeDelivery(delivery)} of ${delivery.dated} is missing`);
      }
    }
  }

  /** Checks that a finished pass has stored every delivery in its range that was visible when it began. */
  #checkPassRange(feed: string, { kind, since, until, begunAt }: ModelPass): void {
    this.coverage[`${kind} passes`] += 1;
    const service = this.#serviceOf(feed);
    for (const delivery of this.missing(feed, true)) {
      const isPromised = service.isPromised(delivery, since) && service.isUpTo(delivery, until);
      if (isPromised && delivery.visibleFrom <= this.#virtual(begunAt)) {
        this.#fail(`the ${kind} pass is finished, but ${describeDelivery(delivery)} is missing`);
      }
    }
  }

  /** Returns whether a delivery is stored or in quarantine. */
  #isStored({ feed, scanId, revision, usable, identity }: Delivery): boolean {
    if ((this.rows.get(scanId)?.revision ?? 0) >= revision) return true;
    return !usable && this.quarantine.has(`${feed}/${identity}`);
  }

  #virtual(time: number | null | undefined): number {
    return time == null ? Number.NEGATIVE_INFINITY : time - (this.clock.now() - this.clock.monotonic());
  }

  /** Records the first broken promise, since the engine would handle a thrown error. */
  #fail(message: string): void {
    this.broken ??= new BrokenPromise(message);
  }
}

interface Deliveries {
  readonly listed: Delivery[];
  /** Those that are neither stored nor in quarantine yet. Stored ones remain stored unless commits are lost. */
  awaited: Delivery[];
}

function describeDelivery({ scanId, revision }: Delivery): string {
  return `revision ${revision} of ${scanId}`;
}

function requireStorable(batch: EntryBatch): void {
  if (batch.some((entry) => storedTexts(entry).some(([, text]) => text.includes(POISON))))
    throw new ModelFailure('data', 'reject');
}
