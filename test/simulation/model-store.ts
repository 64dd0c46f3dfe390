import { createHash } from 'node:crypto';
import type {
  AcceptedEntry,
  AsOf,
  CommitCounts,
  CommitOutcome,
  EarlierPositions,
  EntryBatch,
  FeedIdentity,
  FeedStatus,
  FeedStore,
  LeaseGrant,
  PageCommit,
  PendingRun,
  Position,
  PostponedTry,
  QuarantineEntry,
  StoredResult,
  SweepCommit,
  SweepKind,
  SweepState,
} from '../../src/sync/ports.js';

/** A row of `runs`, as far as the engine's promises reach. */
export interface ModelRow {
  scanId: string;
  revision: number;
  status: string;
  /** JSON text of the entry's content, for conflicts and comparisons. */
  content: string;
  data: string | null;
  markdown: string | null;
  pending: string | null;
  pendingSince: number;
  nextTryAt: number;
  attempts: number;
}

export interface ModelQuarantine extends Omit<QuarantineEntry, 'state'> {
  state: 'open' | 'repaired' | 'replayed' | 'discarded';
  timesSeen: number;
}

interface ModelFeed {
  identity: FeedIdentity;
  cursor: string | null;
  startSince: Date | null;
  resumeSince: Date | null;
  lastDeliveredAt: Date | null;
  earlier: string[];
  completeAsOf: number | null;
  endReachedAt: number | null;
  sweeps: Map<SweepKind, Omit<SweepState, 'ageMs'> & { at: number }>;
  lastPollAt: number | null;
  lastCommitAt: number | null;
  holder: string | null;
  epoch: number;
  expiresAt: number;
}

/** What PostgreSQL promises the engine, in memory: the rules of the commit statement, written a second time. */
export class ModelStore implements FeedStore {
  readonly rows = new Map<string, ModelRow>();
  readonly history: ModelRow[] = [];
  readonly quarantine = new Map<string, ModelQuarantine>();
  readonly feeds = new Map<string, ModelFeed>();

  constructor(
    private readonly now: () => number,
    private readonly pendingRetryMs = 30_000,
    private readonly leaseTtlMs = 30_000,
  ) {}

  async acquireLease(identity: FeedIdentity, holder: string, ttlMs: number): Promise<LeaseGrant | null> {
    const feed = this.feeds.get(identity.name) ?? this.#createFeed(identity);
    if (feed.holder !== null && feed.holder !== holder && feed.expiresAt >= this.now()) return null;
    Object.assign(feed, { identity, holder, epoch: feed.epoch + 1, expiresAt: this.now() + ttlMs });
    return { feed: identity.name, holder, epoch: feed.epoch, filtersBefore: null };
  }

  async renewLease(lease: LeaseGrant, ttlMs: number): Promise<boolean> {
    const feed = this.#held(lease);
    if (feed) feed.expiresAt = this.now() + ttlMs;
    return feed !== null;
  }

  async releaseLease(lease: LeaseGrant): Promise<void> {
    const feed = this.#held(lease);
    if (feed) Object.assign(feed, { holder: null, expiresAt: 0 });
  }

  async readPosition(name: string): Promise<Position> {
    const feed = this.feeds.get(name);
    return { cursor: feed?.cursor ?? null, since: feed?.resumeSince ?? feed?.startSince ?? null };
  }

  async readEarlierPositions(name: string): Promise<EarlierPositions> {
    const feed = this.feeds.get(name);
    const cursors = [...new Set(feed?.earlier.toReversed())].filter((cursor) => cursor !== feed?.cursor);
    return { cursors, lastDeliveredAt: feed?.lastDeliveredAt ?? null };
  }

  async movePosition(lease: LeaseGrant, from: string | null, to: Position): Promise<boolean> {
    const feed = this.#held(lease);
    if (feed === null || feed.cursor !== from) return false;
    if (from !== null) feed.earlier.push(from);
    Object.assign(feed, { cursor: to.cursor, resumeSince: to.since });
    return true;
  }

  async readStatus(name: string): Promise<FeedStatus> {
    const feed = this.feeds.get(name);
    return {
      ...this.#asOf(feed),
      lastPollAt: dateOf(feed?.lastPollAt),
      lastCommitAt: dateOf(feed?.lastCommitAt),
      backfillComplete: (feed?.endReachedAt ?? null) !== null,
      pendingResults: [...this.rows.values()].filter((row) => row.pending !== null).length,
      quarantinedEntries: [...this.quarantine.values()].filter((entry) => entry.state === 'open').length,
      leaseHolder: feed && feed.expiresAt > this.now() ? feed.holder : null,
    };
  }

  async findStored(scanIds: readonly string[]): Promise<readonly StoredResult[]> {
    return scanIds.flatMap((scanId) => {
      const row = this.rows.get(scanId);
      if (row === undefined) return [];
      const { revision, pending, markdown } = row;
      return [{ scanId, revision, complete: pending === null, hasMarkdown: markdown !== null }];
    });
  }

  async commitPage(commit: PageCommit): Promise<CommitOutcome> {
    const feed = this.#held(commit.lease);
    if (feed === null || feed.cursor !== commit.from) return { kind: 'fenced' };
    const counts = this.#write(commit.batch, commit.quarantine, commit.lease.feed);
    if (commit.to !== null && commit.to !== commit.from) feed.earlier.push(commit.to);
    feed.cursor = commit.to;
    if (commit.to !== null) feed.resumeSince = null;
    feed.expiresAt = this.now() + this.leaseTtlMs;
    feed.lastCommitAt = this.now();
    const { freshness } = commit;
    if (freshness !== null) {
      const complete = freshness.atEnd ? freshness.polledAt : freshness.lastDelivered;
      if (complete !== null) feed.completeAsOf = Math.max(feed.completeAsOf ?? Number.NEGATIVE_INFINITY, complete);
      if (freshness.atEnd) feed.endReachedAt ??= this.now();
      const { lastDeliveredAt } = freshness;
      if (lastDeliveredAt !== null && !(feed.lastDeliveredAt !== null && feed.lastDeliveredAt > lastDeliveredAt)) {
        feed.lastDeliveredAt = lastDeliveredAt;
      }
      feed.lastPollAt = freshness.polledAt;
    }
    return { kind: 'committed', counts, asOf: this.#asOf(feed) };
  }

  async commitResults(lease: LeaseGrant, batch: EntryBatch): Promise<CommitOutcome> {
    const feed = this.#held(lease);
    if (feed === null) return { kind: 'fenced' };
    return { kind: 'committed', counts: this.#write(batch, [], lease.feed), asOf: this.#asOf(feed) };
  }

  async readSweeps(name: string): Promise<readonly SweepState[]> {
    const feed = this.feeds.get(name);
    if (feed === undefined) return [];
    const states = [...feed.sweeps.values()].map(({ at, ...sweep }) => ({ ...sweep, ageMs: this.now() - at }));
    if (feed.endReachedAt === null || feed.sweeps.has('full')) return states;
    const history = { since: feed.startSince, until: new Date(feed.endReachedAt), cursor: null };
    return [...states, { kind: 'full', finished: true, ageMs: this.now() - feed.endReachedAt, ...history }];
  }

  async beginSweep(lease: LeaseGrant, kind: SweepKind, since: Date | null, until: Date): Promise<boolean> {
    const feed = this.#held(lease);
    if (feed === null || feed.completeAsOf === null) return false;
    const start = since ?? feed.startSince;
    feed.sweeps.set(kind, { kind, finished: false, at: this.now(), since: start, until, cursor: null });
    return true;
  }

  async commitSweep({ lease, kind, to, batch, quarantine, finished }: SweepCommit): Promise<CommitOutcome> {
    const feed = this.#held(lease);
    if (feed === null) return { kind: 'fenced' };
    const sweep = feed.sweeps.get(kind);
    if (sweep) feed.sweeps.set(kind, { ...sweep, cursor: to, finished, at: finished ? this.now() : sweep.at });
    return { kind: 'committed', counts: this.#write(batch, quarantine, lease.feed), asOf: this.#asOf(feed) };
  }

  async duePending(_feed: string, limit: number): Promise<readonly PendingRun[]> {
    return [...this.rows.values()]
      .filter((row) => row.pending !== null && row.nextTryAt <= this.now())
      .sort((a, b) => a.nextTryAt - b.nextTryAt)
      .slice(0, limit)
      .map(({ scanId, revision, attempts, pendingSince }) => ({
        scanId,
        revision,
        attempts,
        pendingForMs: this.now() - pendingSince,
      }));
  }

  async postponePending(lease: LeaseGrant, tries: readonly PostponedTry[]): Promise<boolean> {
    if (this.#held(lease) === null) return false;
    for (const { scanId, revision, reason, nextTryInMs } of tries) {
      const row = this.rows.get(scanId);
      if (row?.revision !== revision || row.pending === null) continue;
      Object.assign(row, { attempts: row.attempts + 1, pending: reason, nextTryAt: this.now() + nextTryInMs });
    }
    return true;
  }

  #createFeed(identity: FeedIdentity): ModelFeed {
    const { start } = identity;
    const startSince = start === 'beginning' ? null : start === 'now' ? new Date(this.now() - 3_600_000) : start;
    const feed: ModelFeed = {
      identity,
      cursor: null,
      startSince,
      resumeSince: null,
      lastDeliveredAt: null,
      earlier: [],
      completeAsOf: null,
      endReachedAt: null,
      sweeps: new Map(),
      lastPollAt: null,
      lastCommitAt: null,
      holder: null,
      epoch: 0,
      expiresAt: 0,
    };
    this.feeds.set(identity.name, feed);
    return feed;
  }

  #held(lease: LeaseGrant): ModelFeed | null {
    const feed = this.feeds.get(lease.feed);
    return feed !== undefined && feed.epoch === lease.epoch ? feed : null;
  }

  #asOf(feed: ModelFeed | undefined): AsOf {
    const complete = feed?.completeAsOf ?? null;
    return {
      readAt: this.now(),
      dataCompleteAsOf: dateOf(complete),
      lagMs: complete === null ? null : this.now() - complete,
    };
  }

  #write(batch: EntryBatch, quarantine: readonly QuarantineEntry[], feed: string): CommitCounts {
    const items = (JSON.parse(batch.json) as { items: Record<string, unknown>[] }).items;
    const counts = { inserted: 0, updated: 0, unchanged: 0, stale: 0, conflicts: 0 };
    const stored = new Set<string>();
    const best = new Map<string, ModelRow>();
    batch.entries.forEach((entry, index) => {
      const row = this.#rowOf(entry, items[index] ?? {});
      const other = best.get(row.scanId);
      if (other === undefined) best.set(row.scanId, row);
      else {
        const [winner, loser] = wins(row, other) ? [row, other] : [other, row];
        best.set(row.scanId, winner);
        counts[loser.revision < winner.revision ? 'stale' : 'unchanged'] += 1;
        if (loser.revision === winner.revision && differs(loser, winner)) counts.conflicts += 1;
      }
    });
    for (const row of best.values()) {
      const verdict = this.#store(row);
      counts[verdict.counted] += 1;
      if (verdict.conflict) counts.conflicts += 1;
      if (verdict.counted === 'inserted' || verdict.counted === 'updated') stored.add(row.scanId);
      this.#settle(row);
    }
    for (const entry of quarantine) this.#quarantine(entry, feed);
    return { ...counts, quarantined: quarantine.length, stored: [...stored] };
  }

  #rowOf({ run, replaced, pending }: AcceptedEntry, item: Record<string, unknown>): ModelRow {
    const fields: Record<string, unknown> = { ...item, ...replaced };
    const { data, markdown, status, failureReason, error } = fields;
    return {
      scanId: run.scanId,
      revision: run.revision,
      status: run.status,
      content: JSON.stringify([status, failureReason ?? null, error ?? null]),
      data: data === undefined || data === null ? null : JSON.stringify(data),
      markdown: typeof markdown === 'string' ? markdown : null,
      pending,
      pendingSince: this.now(),
      nextTryAt: this.now() + this.pendingRetryMs,
      attempts: 0,
    };
  }

  #store(row: ModelRow): { counted: 'inserted' | 'updated' | 'unchanged' | 'stale'; conflict: boolean } {
    const known = this.rows.get(row.scanId);
    if (known === undefined || row.revision > known.revision) {
      this.rows.set(row.scanId, row);
      if (known !== undefined) this.history.push(known);
      return { counted: known === undefined ? 'inserted' : 'updated', conflict: false };
    }
    if (row.revision < known.revision) return { counted: 'stale', conflict: false };
    const conflict = differs(row, known);
    const fuller =
      (known.pending !== null && row.pending === null) || (known.markdown === null && row.markdown !== null);
    if (!fuller) return { counted: 'unchanged', conflict };
    known.data ??= row.data;
    known.markdown ??= row.markdown;
    if (row.pending === null) known.pending = null;
    return { counted: 'updated', conflict };
  }

  #settle(row: ModelRow): void {
    for (const entry of this.quarantine.values()) {
      if (entry.state !== 'open' || entry.scanId !== row.scanId || (entry.revision ?? 0) > row.revision) continue;
      entry.state = entry.revision === row.revision ? 'replayed' : 'discarded';
    }
  }

  #quarantine(entry: QuarantineEntry, feed: string): void {
    const { scanId, revision, payload } = entry;
    const hash = createHash('sha256').update(payload).digest('hex');
    const identity = `${feed}/${scanId !== null && revision !== null ? `${scanId}#${revision}` : hash}`;
    const overtaken =
      scanId !== null && (this.rows.get(scanId)?.revision ?? 0) >= (revision ?? Number.POSITIVE_INFINITY);
    const state = entry.state === 'open' && overtaken ? 'discarded' : entry.state;
    const known = this.quarantine.get(identity);
    if (known === undefined) this.quarantine.set(identity, { ...entry, state, timesSeen: 1 });
    else {
      known.timesSeen += 1;
      if (known.state === 'open') known.state = state;
    }
  }
}

/** Of two entries of one scan: the higher revision, and of equals the complete one. */
function wins(row: ModelRow, other: ModelRow): boolean {
  if (row.revision !== other.revision) return row.revision > other.revision;
  return row.pending === null && other.pending !== null;
}

function differs(a: ModelRow, b: ModelRow): boolean {
  return a.content !== b.content || (a.pending === null && b.pending === null && a.data !== b.data);
}

function dateOf(time: number | null | undefined): Date | null {
  return time === null || time === undefined ? null : new Date(time);
}
