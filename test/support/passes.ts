import { sql } from 'kysely';
import { beforeEach } from 'vitest';
import { batchOf } from '../../src/sync/page/check-entries.js';
import type { FeedIdentity, LeaseGrant, Pass, PassCommit, PassKind } from '../../src/sync/ports/index.js';
import { pageOf } from './concurrent-commits.js';
import { type StoreSetup, type TestFeed, tables, testFeed } from './store.js';

const { filters } = testFeed();
/** Filters that include more than those of {@link testFeed}. */
export const WIDER = { filters: { ...filters, environment: 'all' } } as const;

/** Takes a feed and has it reach its end, so that it may be read again. */
export async function feedAtEnd(
  setup: StoreSetup,
  over: Partial<FeedIdentity> & Pick<FeedIdentity, 'name'>,
): Promise<TestFeed> {
  const feed = await setup.takeFeed(over);
  const freshness = { end: 'yes' as const, polledAt: performance.now(), completeUpTo: null, lastDeliveredAt: null };
  await feed.commit([], { freshness });
  return feed;
}

/** What the engine commits of a page of a pass with these entries (JSON texts). */
export function passCommit(
  lease: LeaseGrant,
  { id, begunAt, until, cursor }: Pass,
  over: Partial<PassCommit> = {},
  entries: readonly string[] = [],
): PassCommit {
  const content = entries.length === 0 ? { batch: batchOf([]), quarantine: [] } : pageOf(entries);
  const progress = { deliveredUpTo: null, entries: entries.length, feedOrigin: null, pace: null, cachedAt: null };
  return { lease, id, begunAt, until, from: cursor, to: 'on', end: 'no', ...content, ...progress, ...over };
}

/** The unfinished pass of this kind, which must exist. */
export async function nextPass({ store }: StoreSetup, feed: string, kind: PassKind): Promise<Pass> {
  const pass = await store.nextPass(feed, kind);
  if (pass === null) throw new Error(`no ${kind} pass is unfinished`);
  return pass;
}

/** Commits the last page of a pass. */
export async function finishPass({ store }: StoreSetup, lease: LeaseGrant, pass: Pass): Promise<void> {
  const { origin: feedOrigin } = await store.readPosition(lease.feed);
  const { kind } = await store.commitPass(passCommit(lease, pass, { end: 'yes', feedOrigin }));
  if (kind === 'fenced') throw new Error(`the ${pass.kind} pass was not finished`);
}

/** A new feed for each test. */
export function useNewFeed(setup: StoreSetup) {
  let feeds = 0;
  const feed = {
    name: '',
    /** Continues with another feed. */
    renew: () => {
      feeds += 1;
      feed.name = `feed-${feeds}`;
    },
    /** Takes the feed and has it reach its end. */
    take: (over: Partial<FeedIdentity> = {}) => feedAtEnd(setup, { name: feed.name, ...over }),
    /** Returns its unfinished pass of a kind. */
    next: (kind: PassKind) => nextPass(setup, feed.name, kind),
  };
  beforeEach(feed.renew);
  return feed;
}

export interface PassRow {
  readonly kind: PassKind;
  readonly since: Date | null;
  readonly until: Date;
  readonly cursor: string | null;
  readonly finished: boolean;
  readonly cancelled: boolean;
}

/** All passes of a feed, in the order in which they began. */
export function passRows({ rows }: StoreSetup, feed: string): Promise<PassRow[]> {
  return rows(sql<PassRow>`
    SELECT kind, since, until, cursor, finished_at IS NOT NULL AS finished, cancelled
    FROM ${tables.passes} WHERE feed = ${feed} ORDER BY id`);
}
