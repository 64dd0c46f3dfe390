import { expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { openSharedParts } from '../../../src/daemon/shared-parts.js';
import { recordingLogger } from '../../support/observed.js';
import { useDatabase } from '../../support/postgres/index.js';
import { settingsWith } from '../../support/settings.js';
import { MIGRATED, testFeed } from '../../support/store.js';

const provided = useDatabase(MIGRATED);

it.each([
  ['a feed', true],
  ['many feeds', false],
])('takes and renews the leases of %s when all connections for other statements are in use', async (_, isSingle) => {
  const settings = settingsWith({
    DATABASE_URL: provided.url,
    SCANFEED_DATABASE_POOL: '1',
    SCANFEED_LEASE_TTL: '1s',
    SCANFEED_AUTO_MIGRATE: 'false',
  });
  const stop = new AbortController();
  const { signal } = stop;
  const { logger } = recordingLogger();
  const followed = { single: isSingle ? settings : null, invalidFeeds: () => 0 };
  const context = { logger, tracer: null, clock: systemClock };
  const { shared, close } = openSharedParts(settings, context, followed, signal);
  const user = { isLeader: () => false, isReadingInBulk: () => false, onOutage: () => {}, onPreparing: () => {} };
  const { connection, leases } = shared.schemas.open(settings, user);
  const feed = testFeed();
  await connection.db.connection().execute(async () => {
    leases.follow(feed.name);
    expect(await leases.checkStatus(feed.name, signal, true)).toMatchObject({ answer: { leaseHolder: null } });
    const lease = (await leases.take(feed, null, signal))?.lease ?? null;
    if (lease === null) throw new Error('the feed is held by another');
    expect(await leases.renew(lease, signal)).toMatchObject({ answer: { status: { leaseHolder: shared.holder } } });
    await leases.release(lease);
  });
  stop.abort();
  await shared.schemas.close(settings, user);
  await close();
});
