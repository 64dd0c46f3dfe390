import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/demo/embedded-postgres/index.js';
import { ServiceClient } from '../../../src/service/client.js';
import { type Database, type DatabaseOptions, openDatabase } from '../../../src/storage/connection/pool.js';
import { disruptAfterCommits } from '../../support/disrupt-after-commits.js';
import { type FollowOptions, followToTheEnd } from '../../support/follow-to-the-end.js';
import { type OracleFeed, startOracleFeed } from '../../support/oracle-feed.js';
import { useDatabase } from '../../support/postgres/index.js';
import { withConnection } from '../../support/postgres/maintenance.js';
import { connectionOf, MIGRATED, openTestDatabase, tables, useStore } from '../../support/store.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { watchUncaught } from '../../support/uncaught.js';
import { unusedPort } from '../../support/unused-port.js';
import { seededRandom } from '../../support/virtual-clock.js';

const uncaught = watchUncaught();
afterEach(() => expect(uncaught).toEqual([]));

describe('a pool with idle connections', () => {
  const provided = useDatabase();
  let proxy: TcpProxy;
  let database: Database;
  const open = (over: Partial<DatabaseOptions> = {}) => {
    const connection = connectionOf(proxy.urlOf(provided.url));
    database = openDatabase({ connection, maxConnections: 3, ...over });
  };
  const query = () => sql<{ pid: number }>`SELECT pg_backend_pid() AS pid, pg_sleep(0.02)`.execute(database.sql);
  const warmUp = async () => {
    await Promise.all([query(), query(), query()]);
    expect(database.usage()).toEqual({ active: 0, idle: 3, waiting: 0 });
  };
  beforeEach(async () => {
    proxy = await TcpProxy.to(provided.url);
  });
  afterEach(async () => {
    await database.close();
    await proxy.close();
  });

  it.each(['reset', 'end'] as const)('discards and replaces them when they are cut (%s)', async (cutKind) => {
    open();
    await warmUp();
    proxy.cutAll(cutKind);
    await expect.poll(() => database.usage().idle).toBe(0);
    await warmUp();
    expect(proxy.connections).toHaveLength(6);
  });

  it('discards and replaces them when the server terminates their sessions', async () => {
    open();
    await warmUp();
    await withConnection(provided.url, (client) => client.query(TERMINATE_OTHERS));
    await expect.poll(() => database.usage().idle).toBe(0);
    await warmUp();
  });

  it('discards each within the deadline of a statement when the network drops all data', async () => {
    open({ statementDeadlineMs: 300, connectDeadlineMs: 300 });
    await warmUp();
    proxy.cutAll('silence');
    for (let idle = 3; idle > 0; idle -= 1) {
      await expect(query()).rejects.toMatchObject({ kind: 'deadline', action: 'retry' });
    }
    expect((await query()).rows).toHaveLength(1);
    await Promise.all(proxy.connections.slice(0, 3).map(({ closed }) => closed));
  });

  it('gives up on a new connection when it is accepted but never answered', async () => {
    open({ connectDeadlineMs: 300 });
    proxy.set({ blackhole: true });
    await expect(query()).rejects.toMatchObject({ kind: 'connection', action: 'retry' });
    proxy.heal();
    expect((await query()).rows).toHaveLength(1);
  });
});

const TERMINATE_OTHERS = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;

describe('a feed of 2,000 runs', () => {
  let feed: OracleFeed;
  let client: ServiceClient;
  beforeEach(async () => {
    feed = await startOracleFeed();
    client = new ServiceClient({ baseUrl: feed.emulator.url, apiKey: feed.emulator.apiKey });
  });
  afterEach(async () => {
    await client.close();
    await feed.emulator.close();
  });
  /** Follows the feed in pages of 50, and calls `disrupt` after some of the commits. */
  const follow = async (over: Pick<FollowOptions, 'url'> & Partial<FollowOptions>, disrupt: () => Promise<void>) => {
    const { onCommitted, settled } = disruptAfterCommits(disrupt);
    const followed = await followToTheEnd({
      feed: 'default',
      service: client,
      onCommitted,
      context: { pageSize: 50 },
      ...over,
      database: { maxConnections: 5, ...over.database },
    });
    await settled();
    return followed;
  };

  describe('on a running server', () => {
    const provided = useDatabase(MIGRATED);
    const setup = useStore(provided);

    it('is stored as the oracle expects when all sessions of the daemon are terminated repeatedly', async () => {
      const random = seededRandom(6);
      let ended = 0;
      const database = openTestDatabase(provided.url, 1);
      const followed = await follow({ url: provided.url }, async () => {
        await sleep(random() * 20);
        const { rows } = await sql.raw(TERMINATE_OTHERS).execute(database.sql);
        ended += rows.length;
      });
      await database.close();
      console.info(`${ended} sessions terminated, ${followed.failures.length} failures, all 2,000 runs stored`);
      expect(followed.failures.length).toBeGreaterThan(5);
      await feed.expectStored(setup);
    });
  });

  describe('on a server of its own', () => {
    let directory: string;
    let server: EmbeddedPostgres;
    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'scanfeed-restart-'));
      server = await startEmbeddedPostgres({ directory, port: await unusedPort() });
      await MIGRATED.prepare(server.url);
    });
    afterAll(async () => {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
      if (server.cluster.directory !== directory) await rm(server.cluster.directory, { recursive: true, force: true });
    });
    const setup = useStore({
      get url() {
        return server.url;
      },
    });

    it('is stored as the oracle expects, within one epoch, when the server restarts three times', async () => {
      let restarts = 0;
      const followed = await follow({ url: server.url }, async () => {
        if (restarts === 3) return;
        restarts += 1;
        await server.stop();
        server = await startEmbeddedPostgres({ directory, port: server.port });
      });
      expect(restarts).toBe(3);
      expect(followed.failures.length).toBeGreaterThanOrEqual(3);
      await feed.expectStored(setup);
      expect(await setup.rows(sql`SELECT lease_epoch::int AS epochs FROM ${tables.feeds}`)).toEqual([{ epochs: 1 }]);
    });
  });
});
