import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { openSharedParts } from '../../../src/daemon/shared-parts.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { recordingLogger } from '../../support/observed.js';
import { useDatabase } from '../../support/postgres/index.js';
import { settingsWith } from '../../support/settings.js';
import { MIGRATED, tables, testFeed, useStore } from '../../support/store.js';

const provided = useDatabase(MIGRATED);
const setup = useStore(provided);

/** The parts of a process with one connection for commits. */
function openProcess() {
  const settings = settingsWith({
    DATABASE_URL: provided.url,
    SCANFEED_DATABASE_POOL: '1',
    SCANFEED_LEASE_TTL: '3s',
    SCANFEED_AUTO_MIGRATE: 'false',
  });
  const stop = new AbortController();
  const followed = { onlyFeed: null, invalidFeeds: () => 0 };
  const context = { logger: recordingLogger().logger, tracer: null, clock: systemClock };
  const { shared, close } = openSharedParts(settings, context, followed, stop.signal);
  const user = { isLeader: () => false, isReadingInBulk: () => false, onOutage: () => {}, onPreparing: () => {} };
  const { connection, leases } = shared.schemas.open(settings, user);
  const { process } = shared.schemas;
  return {
    ...{ connection, leases, signal: stop.signal },
    isRenewed: async () => {
      const expiry = process.aliveUntil();
      await expect.poll(process.aliveUntil, { timeout: 10_000 }).toBeGreaterThan(expiry);
    },
    close: async () => {
      stop.abort();
      await shared.schemas.close(settings, user);
      await close();
    },
  };
}

it('takes and keeps the leases of feeds when all connections for other statements are in use', async () => {
  const { connection, leases, signal, isRenewed, close } = openProcess();
  const feed = testFeed();
  await connection.db.connection().execute(async () => {
    leases.follow(feed.name);
    const read = await leases.nextRead(signal);
    expect(read).toMatchObject({ feeds: new Map([[feed.name, expect.objectContaining({ holder: null })]]) });
    const lease = await leases.take(feed, null, signal);
    if (lease === null) throw new Error('the feed is held by another');
    leases.readEarly();
    expect(await leases.nextRead(signal)).toMatchObject({
      feeds: new Map([[feed.name, expect.objectContaining({ holder: lease.holder, epoch: lease.epoch })]]),
    });
    await isRenewed();
    await leases.release(lease.feed);
    leases.unfollow(feed.name);
  });
  await close();
});

it('renews the lease of the process when all connections for feeds wait for a lock', async () => {
  const { leases, signal, isRenewed, close } = openProcess();
  leases.follow('default');
  await leases.nextRead(signal);
  const taking = await setup.database.sql.transaction().execute(async (tx) => {
    await sql`LOCK TABLE ${tables.feeds}`.execute(tx);
    const takes = ['one', 'two', 'three'].map((name) => leases.take(testFeed({ name }), null, signal));
    await untilWaiting(setup.database.sql, 2);
    await isRenewed();
    return { takes: Promise.allSettled(takes) };
  });
  await taking.takes;
  leases.unfollow('default');
  await close();
});
