import type {
  CommitOutcome,
  EarlierPositions,
  EndClaim,
  EntryBatch,
  FeedIdentity,
  FeedStatus,
  FeedStore,
  Freshness,
  FreshnessClaim,
  LastPass,
  LeaseGrant,
  LivingProcesses,
  NewPass,
  PageCommit,
  Pass,
  PassCommit,
  PassKind,
  PendingReason,
  PendingRun,
  Position,
  PostponedTry,
  ProcessRenewal,
  ProcessStore,
  QuarantineEntry,
  ReadingPace,
  StoredFeed,
  StoredPosition,
  StoredResult,
} from '../../src/sync/ports/index.js';
import { ModelFailure } from './model-failure.js';
import { earlierCursors, includesNoMore, type ModelFeed, type ModelPosition, newFeed } from './model-feed.js';
import {
  beginPassOf,
  initialSyncIsComplete,
  lastPassOf,
  type ModelPass,
  movePass,
  newPass,
  passAt,
  passOf,
  unfinishedPass,
} from './model-passes.js';
import { type ModelRow, ModelRows, replaceEntries } from './model-rows.js';

export type { ModelFeed } from './model-feed.js';
export type { ModelQuarantine, ModelRow } from './model-rows.js';

export interface ModelStoreSettings {
  /** Monotonic clock of the processes; the database's clock by default. */
  readonly monotonic?: () => number;
  readonly pendingRetryMs?: number;
  readonly schema?: string;
  /** Minimum interval between two positions in the history, milliseconds. */
  readonly checkpointEveryMs?: number;
}

const POSITIONS_KEPT = 300;

/** A row of `processes`. */
interface ModelProcess {
  readonly feeds: number;
  readonly unusable: readonly string[];
  readonly renewedAt: number;
  readonly expiresAt: number;
}

/** A second implementation of the store, in memory, with the rules of the SQL statements. */
export class ModelStore implements FeedStore, ProcessStore {
  readonly feeds = new Map<string, ModelFeed>();
  readonly processes = new Map<string, ModelProcess>();
  readonly #settings: Required<ModelStoreSettings>;
  readonly #rows: ModelRows;
  /** Number of passes begun. */
  #passes = 0;
  #origins = 0;

  /** @param now clock of the database, milliseconds since 1970 */
  constructor(
    private readonly now: () => number,
    settings: ModelStoreSettings = {},
    /** The store with the processes; null: this one. */
    private readonly home: ModelStore | null = null,
  ) {
    this.#settings = {
      monotonic: now,
      pendingRetryMs: 30_000,
      schema: 'scanfeed',
      checkpointEveryMs: 300_000,
      ...settings,
    };
    const keepsHistory = (name: string) => this.feeds.get(name)?.keepHistory !== false;
    this.#rows = new ModelRows({ now, pendingRetryMs: this.#settings.pendingRetryMs, keepsHistory });
  }

  get rows() {
    return this.#rows.runs;
  }

  get history() {
    return this.#rows.history;
  }

  get quarantine() {
    return this.#rows.quarantine;
  }

  async acquireLease(identity: FeedIdentity, holder: string): Promise<LeaseGrant | null> {
    const feed = this.feeds.get(identity.name) ?? newFeed(identity, this.now());
    const elsewhere = feed.baseUrl !== identity.baseUrl && feed.lastCommitAt !== null;
    if (elsewhere) throw new ModelFailure('another_service', 'hold');
    if (feed.holder !== holder && this.#leader(feed) !== null) return null;
    feed.baseUrl = identity.baseUrl;
    this.feeds.set(identity.name, feed);
    const before = feed.filters;
    const nothingRead = feed.cursor === null && feed.resumeSince === null && feed.completeAsOf === null;
    if (!nothingRead && !includesNoMore(before, identity.filters)) {
      feed.filtersWidenedAt = this.now();
      feed.completeFrom = Math.max(feed.completeFrom, this.now(), feed.lastDeliveredAt?.getTime() ?? 0);
    }
    const { filters, keepHistory } = identity;
    Object.assign(feed, { filters, keepHistory, holder, epoch: feed.epoch + 1 });
    const changed = JSON.stringify(before) !== JSON.stringify(filters);
    return { feed: identity.name, holder, epoch: feed.epoch, filtersBefore: changed ? before : null };
  }

  async releaseLease({ feed: name, holder }: Pick<LeaseGrant, 'feed' | 'holder'>): Promise<void> {
    const feed = this.feeds.get(name);
    if (feed?.holder === holder) feed.holder = null;
  }

  async renewProcess({ holder, feeds, unusable, ttlMs }: ProcessRenewal): Promise<LivingProcesses> {
    const now = this.now();
    const own = this.processes.get(holder);
    const wasAlive = own !== undefined && isAlive(own, now);
    this.processes.set(holder, { feeds, unusable, renewedAt: now, expiresAt: now + ttlMs });
    const others = [...this.processes].filter(([name, process]) => name !== holder && isAlive(process, now));
    const living = new Map([[holder, feeds], ...others.map(([name, process]) => [name, process.feeds] as const)]);
    return { living, wasAlive, clockWasSetBack: own !== undefined && own.renewedAt > now };
  }

  async removeProcess(holder: string): Promise<void> {
    this.processes.delete(holder);
  }

  async forgetFreshness(holder: string): Promise<void> {
    for (const feed of this.feeds.values()) if (feed.holder === holder) feed.completeAsOf = null;
  }

  /** The living process that leads a feed. */
  #leader({ holder }: ModelFeed): string | null {
    const process = holder === null ? undefined : (this.home ?? this).processes.get(holder);
    const isLed = process !== undefined && isAlive(process, this.now());
    return isLed && !process.unusable.includes(this.#settings.schema) ? holder : null;
  }

  async readPosition(name: string): Promise<StoredPosition> {
    const feed = this.feeds.get(name);
    const { cursor = null, origin = null } = feed ?? {};
    return { cursor, origin, since: feed?.resumeSince ?? feed?.startSince ?? null };
  }

  async readEarlierPositions(name: string): Promise<EarlierPositions> {
    const feed = this.feeds.get(name);
    if (feed === undefined) return { cursors: [], deliveredUpTo: null, startSince: null };
    return { cursors: earlierCursors(feed), deliveredUpTo: feed.deliveredUpTo, startSince: feed.startSince };
  }

  async findDelivered(feed: string, from: Date, to: Date, limit: number) {
    const at = ({ deliveredAt }: ModelRow) => (deliveredAt === null ? Number.NaN : Date.parse(deliveredAt));
    return [...this.rows.values()]
      .filter((row) => row.feed === feed && from.getTime() <= at(row) && at(row) <= to.getTime())
      .sort((a, b) => at(b) - at(a))
      .slice(0, limit)
      .map(({ scanId, revision }) => ({ scanId, revision }));
  }

  async movePosition(lease: LeaseGrant, from: string | null, to: Position): Promise<boolean> {
    const feed = this.#held(lease);
    if (feed === null || feed.cursor !== from) return false;
    this.#note(feed, { cursor: from, notedAt: this.now(), deliveredUpTo: feed.deliveredUpTo, reason: 'rejected' });
    Object.assign(feed, { cursor: to.cursor, resumeSince: to.since });
    return true;
  }

  async storeStuck(lease: LeaseGrant, stuck: boolean): Promise<void> {
    const feed = this.#held(lease);
    if (feed !== null) feed.stuckSince = stuck ? (feed.stuckSince ?? this.now()) : null;
  }

  async readStatus(name: string): Promise<FeedStatus> {
    const feed = this.feeds.get(name);
    let [pendingResults, quarantinedEntries, runsWithoutData] = [0, 0, 0];
    for (const row of this.rows.values()) {
      if (row.feed !== name) continue;
      if (row.pending !== null) pendingResults += 1;
      else if (row.status === 'completed' && row.data === null) runsWithoutData += 1;
    }
    for (const [identity, { state }] of this.quarantine) {
      if (state === 'open' && identity.startsWith(`${name}/`)) quarantinedEntries += 1;
    }
    const { readAt, dataCompleteAsOf, lagMs } = this.#asOf(feed);
    // No spread: it makes the literal several times as slow, and this is called most.
    return {
      readAt,
      dataCompleteAsOf,
      lagMs,
      lastPollAt: dateOf(feed?.lastPollAt),
      lastCommitAt: dateOf(feed?.lastCommitAt),
      lastDeliveredAt: feed?.lastDeliveredAt ?? null,
      endReached: (feed?.endReachedAt ?? null) !== null,
      initialSyncComplete: feed !== undefined && initialSyncIsComplete(feed),
      stuckSince: dateOf(feed?.stuckSince),
      acceptsBadUntil: null, // no operator accepts anything here
      pendingResults,
      quarantinedEntries,
      runsWithoutData,
      leaseHolder: feed === undefined ? null : this.#leader(feed),
      baseUrl: feed && feed.lastCommitAt !== null ? feed.baseUrl : null,
    };
  }

  async readFeeds(names: readonly string[]): Promise<ReadonlyMap<string, StoredFeed>> {
    const feeds = new Map<string, StoredFeed>();
    for (const name of names) {
      const feed = this.feeds.get(name);
      const kinds = feed?.passes.filter(({ finishedAt }) => finishedAt === null).map(({ kind }) => kind);
      const status = await this.readStatus(name);
      feeds.set(name, {
        ...{ status, holder: feed?.holder ?? null, epoch: feed?.epoch ?? 0 },
        unfinished: [...new Set(kinds)],
      });
    }
    return feeds;
  }

  async findStored(scanIds: readonly string[]): Promise<readonly StoredResult[]> {
    return scanIds.flatMap((scanId) => {
      const row = this.rows.get(scanId);
      if (row === undefined) return [];
      const { revision, status, data, pending, markdown, markdownAbsent } = row;
      const complete = pending === null && (status === 'failed' || data !== null);
      return [{ scanId, revision, complete, markdownKnown: markdown !== null || markdownAbsent }];
    });
  }

  async tryEntries(_lease: LeaseGrant, _batch: EntryBatch): Promise<void> {}

  async commitPage(commit: PageCommit): Promise<CommitOutcome> {
    return this.writePage(commit);
  }

  protected writePage(commit: PageCommit): CommitOutcome {
    const feed = this.#held(commit.lease);
    if (feed === null || feed.cursor !== commit.from) return { kind: 'fenced' };
    const { counts, isEnd } = this.#write(commit, commit.freshness.end);
    const rewoundToTime = commit.from === null && feed.resumeSince !== null;
    if (commit.from === null) {
      feed.origin = `${++this.#origins}`;
      feed.readByTimeUntil = commit.freshness.lastDeliveredAt?.getTime() ?? this.now();
    }
    feed.cursor = commit.to;
    if (commit.to !== null) feed.resumeSince = null;
    feed.lastCommitAt = this.now();
    this.#refresh(feed, commit.freshness, isEnd, rewoundToTime);
    if (commit.to !== commit.from)
      this.#checkpoint(feed, commit.to, commit.freshness.lastDeliveredAt ?? feed.deliveredUpTo);
    return { kind: 'committed', counts, asOf: this.#asOf(feed), endClaimed: isEnd };
  }

  /** Writes the entries. Returns also whether the page is the end, which may depend on whether it brought anything new. */
  #write({ batch, quarantine, lease }: Pick<PageCommit, 'lease' | 'batch' | 'quarantine'>, end: EndClaim) {
    const known = new Set(this.quarantine.keys());
    const counts = this.#rows.write(batch, quarantine, lease.feed);
    const isNewlyBad = [...this.quarantine].some(([key, { state }]) => state !== 'repaired' && !known.has(key));
    const bringsNew = counts.inserted + counts.updated > 0 || isNewlyBad;
    return { counts, isEnd: end === 'yes' || (end === 'ifNothingNew' && !bringsNew) };
  }

  async commitResults(
    lease: LeaseGrant,
    batch: EntryBatch,
    quarantine: readonly QuarantineEntry[] = [],
  ): Promise<CommitOutcome> {
    return this.writeResults(lease, batch, quarantine);
  }

  protected writeResults(lease: LeaseGrant, batch: EntryBatch, quarantine: readonly QuarantineEntry[]): CommitOutcome {
    const feed = this.#held(lease);
    if (feed === null) return { kind: 'fenced' };
    const { counts, isEnd } = this.#write({ batch, quarantine, lease }, 'no');
    return { kind: 'committed', counts, asOf: this.#asOf(feed), endClaimed: isEnd };
  }

  async nextPass(name: string, kind: PassKind): Promise<Pass | null> {
    const feed = this.feeds.get(name);
    const pass = feed && feed.lastCommitAt !== null ? unfinishedPass(feed, kind) : undefined;
    return pass === undefined ? null : passOf(pass);
  }

  async readLastPass(name: string, kind: NewPass['kind']): Promise<LastPass | null> {
    const feed = this.feeds.get(name);
    return feed === undefined ? null : lastPassOf(feed, kind, this.now());
  }

  async beginPass(lease: LeaseGrant, begun: NewPass): Promise<Pass | null> {
    const feed = this.#held(lease);
    this.#passes += 1;
    const pass = feed && beginPassOf(feed, begun, String(this.#passes), this.now());
    return pass && passOf(pass);
  }

  async commitPass(commit: PassCommit): Promise<CommitOutcome> {
    return this.writePass(commit);
  }

  protected writePass(commit: PassCommit): CommitOutcome {
    const feed = this.#held(commit.lease);
    const pass = feed && passAt(feed, commit);
    if (!feed || !pass) return { kind: 'fenced' };
    const { counts, isEnd } = this.#write(commit, commit.end);
    const times = { now: this.now(), monotonic: this.#settings.monotonic() };
    movePass(feed, pass, commit, { runsStored: counts.inserted + counts.updated, isEnd, ...times });
    return { kind: 'committed', counts, asOf: this.#asOf(feed), endClaimed: isEnd };
  }

  async notYetQuarantined(name: string, entries: readonly QuarantineEntry[]): Promise<readonly QuarantineEntry[]> {
    return this.#rows.notYetQuarantined(entries, name);
  }

  async storePace(_lease: LeaseGrant, _pace: ReadingPace | null): Promise<void> {}

  async duePending(name: string, limit: number): Promise<readonly PendingRun[]> {
    return [...this.rows.values()]
      .filter((row) => row.pending !== null && row.feed === name && row.nextTryAt <= this.now())
      .sort(
        (a, b) => Number(b.pending === 'no_memory') - Number(a.pending === 'no_memory') || a.nextTryAt - b.nextTryAt,
      )
      .slice(0, limit)
      .map(({ scanId, revision, status, pending, attempts, pendingSince }) => ({
        scanId,
        revision,
        status,
        reason: pending as PendingReason,
        attempts,
        pendingForMs: this.now() - pendingSince,
      }));
  }

  async postponePending(lease: LeaseGrant, tries: readonly PostponedTry[]): Promise<boolean> {
    if (this.#held(lease) === null) return false;
    for (const { scanId, revision, reason, nextTryInMs } of tries) {
      const row = this.rows.get(scanId);
      if (row?.revision !== revision || row.pending === null) continue;
      const pending = row.pending === 'test_mode_unknown' ? row.pending : reason;
      Object.assign(row, { attempts: row.attempts + 1, pending, nextTryAt: this.now() + nextTryInMs });
    }
    return true;
  }

  /** Copies all data. Returns a function that restores it, like a failover to an asynchronous standby. */
  snapshot(): () => void {
    const [feeds, processes] = [structuredClone(this.feeds), new Map(this.processes)];
    const passes = this.#passes;
    const restoreRows = this.#rows.snapshot();
    return () => {
      replaceEntries(this.feeds, feeds);
      replaceEntries(this.processes, processes);
      this.#passes = passes;
      restoreRows();
    };
  }

  /** Returns the latest pass of a kind. */
  latestPass(kind: PassKind, name = 'default'): ModelPass | undefined {
    return this.feeds.get(name)?.passes.findLast((pass) => pass.kind === kind);
  }

  /** Requests a backfill like `scanfeed backfill`. */
  requestBackfill(since: Date | null, until: Date, name = 'default'): ModelPass {
    this.#passes += 1;
    const pass = newPass({ id: String(this.#passes), kind: 'backfill', since, until, begunAt: this.now() });
    this.feeds.get(name)?.passes.push(pass);
    return pass;
  }

  /** Rewinds the feed like `scanfeed rewind`, to an earlier cursor or its start. The leader loses the lease. */
  rewind(name: string, cursor: string | null): void {
    const feed = this.feeds.get(name);
    if (feed === undefined) return;
    const target = feed.earlier.findLast((noted) => cursor !== null && noted.cursor === cursor) ?? null;
    this.#note(feed, {
      cursor: feed.cursor,
      notedAt: this.now(),
      deliveredUpTo: feed.deliveredUpTo,
      reason: 'rewind',
      target,
    });
    Object.assign(feed, {
      epoch: feed.epoch + 1,
      cursor,
      resumeSince: null,
      deliveredUpTo: target?.deliveredUpTo ?? null,
    });
  }

  #held(lease: LeaseGrant): ModelFeed | null {
    const feed = this.feeds.get(lease.feed);
    return feed?.epoch === lease.epoch && (feed.holder ?? '') === lease.holder ? feed : null;
  }

  /** Updates the freshness. Converts ages to times of the database's clock. */
  #refresh(
    feed: ModelFeed,
    { polledAt, completeUpTo, lastDeliveredAt }: FreshnessClaim,
    isEnd: boolean,
    rewoundToTime: boolean,
  ): void {
    const timeOf = (instant: number) => this.now() - Math.max(0, this.#settings.monotonic() - instant);
    const complete = isEnd ? polledAt : completeUpTo;
    if (complete !== null && !rewoundToTime) {
      feed.completeAsOf = Math.max(feed.completeAsOf ?? Number.NEGATIVE_INFINITY, timeOf(complete));
    }
    if (isEnd) feed.endReachedAt ??= this.now();
    feed.lastDeliveredAt = latest(feed.lastDeliveredAt, lastDeliveredAt);
    feed.deliveredUpTo = latest(feed.deliveredUpTo, lastDeliveredAt);
    feed.lastPollAt = timeOf(polledAt);
  }

  #checkpoint(feed: ModelFeed, cursor: string | null, deliveredUpTo: Date | null): void {
    const last = feed.earlier.at(-1)?.notedAt ?? Number.NEGATIVE_INFINITY;
    if (Math.abs(this.now() - last) <= this.#settings.checkpointEveryMs) return;
    this.#note(feed, { cursor, notedAt: this.now(), deliveredUpTo, reason: 'checkpoint' });
  }

  #note(feed: ModelFeed, position: ModelPosition): void {
    feed.earlier.push(position);
    feed.earlier.splice(0, feed.earlier.length - POSITIONS_KEPT);
  }

  #asOf(feed: ModelFeed | undefined): Freshness {
    const complete = feed?.completeAsOf ?? null;
    return {
      readAt: this.#settings.monotonic(),
      dataCompleteAsOf: dateOf(complete),
      lagMs: complete === null ? null : this.now() - complete,
    };
  }
}

function isAlive({ renewedAt, expiresAt }: ModelProcess, now: number): boolean {
  return renewedAt <= now && now <= expiresAt;
}

function latest(one: Date | null, other: Date | null): Date | null {
  return one === null || (other !== null && other > one) ? other : one;
}

function dateOf(time: number | null | undefined): Date | null {
  return time === null || time === undefined ? null : new Date(time);
}
