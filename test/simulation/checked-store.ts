import type { CommitOutcome, EntryBatch, LeaseGrant, PageCommit, SweepCommit } from '../../src/sync/ports.js';
import { ModelStore } from './model-store.js';
import type { Delivery, SimulatedService } from './simulated-service.js';

/** A promise that was broken; the message says which and by what. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
}

/** The model store, holding every commit against the promises at the very moment it happens. */
export class CheckedStore extends ModelStore {
  commits = 0;
  broken: BrokenPromise | null = null;

  constructor(
    now: () => number,
    private readonly service: SimulatedService,
  ) {
    super(now);
  }

  override async commitPage(commit: PageCommit): Promise<CommitOutcome> {
    return this.#checked(
      commit.batch,
      () => super.commitPage(commit),
      () => {
        this.#cursorMovesAlongServedPages(commit);
        this.#freshnessIsTrue(commit.lease.feed);
      },
    );
  }

  override async commitResults(lease: LeaseGrant, batch: EntryBatch): Promise<CommitOutcome> {
    return this.#checked(
      batch,
      () => super.commitResults(lease, batch),
      () => {},
    );
  }

  override async commitSweep(commit: SweepCommit): Promise<CommitOutcome> {
    return this.#checked(
      commit.batch,
      () => super.commitSweep(commit),
      () => {},
    );
  }

  async #checked(batch: EntryBatch, write: () => Promise<CommitOutcome>, check: () => void): Promise<CommitOutcome> {
    const before = new Map(batch.entries.map(({ run }) => [run.scanId, { ...this.rows.get(run.scanId) }]));
    const outcome = await write();
    if (outcome.kind === 'fenced') return outcome;
    this.commits += 1;
    for (const [scanId, old] of before) {
      const row = this.rows.get(scanId);
      if ((row?.revision ?? 0) < (old.revision ?? 0)) throw this.#fail(`the revision of ${scanId} went back`);
      if (row?.revision === old.revision && old.pending === null && row?.pending !== null) {
        throw this.#fail(`${scanId} was complete and became pending`);
      }
    }
    check();
    return outcome;
  }

  #cursorMovesAlongServedPages({ from, to }: PageCommit): void {
    if (from === to) return;
    const page = this.service.served.findLast((served) => served.from === from && served.next === to);
    if (page === undefined) throw this.#fail(`the cursor went from ${from} to ${to}, which no page leads to`);
    for (const delivery of page.deliveries) {
      if (!this.#has(delivery))
        throw this.#fail(`${delivery.scanId} revision ${delivery.revision} was passed and not kept`);
    }
  }

  #freshnessIsTrue(name: string): void {
    const completeAsOf = this.feeds.get(name)?.completeAsOf ?? null;
    if (completeAsOf === null) return;
    for (const delivery of this.service.deliveries) {
      if (delivery.behind || delivery.deliveredAt > completeAsOf || this.#has(delivery)) continue;
      throw this.#fail(`complete as of ${completeAsOf}, but ${delivery.scanId} of ${delivery.deliveredAt} is missing`);
    }
  }

  #has({ scanId, revision, usable }: Delivery): boolean {
    if ((this.rows.get(scanId)?.revision ?? 0) >= revision) return true;
    return !usable && this.quarantine.has(`default/${scanId}#${revision}`);
  }

  /** The first one is kept: an engine that outlives everything outlives this error too. */
  #fail(message: string): BrokenPromise {
    this.broken ??= new BrokenPromise(message);
    return this.broken;
  }
}
