import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { connectStore } from '../../../src/storage/connection/store-connection.js';
import { createProcesses } from '../../../src/storage/feeds/processes.js';
import { createFeeds } from '../../../src/storage/operator/feeds.js';
import { forgetFeed } from '../../../src/storage/operator/forget-feed.js';
import { migrate } from '../../../src/storage/schema/migrate.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { createStore } from '../../../src/storage/store.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { liveAs, openTestDatabase, takeFeed, testFeed, useStore } from '../../support/store.js';

const SCHEMAS = ['home', 'home "2"', 'invoices', 'orders'];
const provided = useDatabase({
  key: 'several_schemas',
  prepare: async (url) => {
    const database = openTestDatabase(url, 1);
    for (const schema of SCHEMAS) await migrate(connectStore(database, schema), await readMigrations());
    await database.close();
  },
});
const setup = useStore(provided);

/** The store of a schema, as a process opens it whose settings have the schema `home`. */
const open = (schema: string, home = schema) =>
  createStore(setup.database, { schema, home, pendingRetryMs: 30_000, keptDays: null, monotonic: () => 0 });
const homeOf = (schema: string) => connectStore(setup.database, schema);
const feedOf = async (schema: string, home?: string) =>
  (await open(schema, home).readFeeds(['default'])).get('default');

beforeEach(async () => {
  for (const schema of SCHEMAS) {
    for (const table of ['feeds', 'processes']) await setup.rows(sql`DELETE FROM ${sql.id(schema, table)}`);
  }
});

describe('feeds in other schemas than that of the settings', () => {
  it('are led while the process is alive in the schema of the settings', async () => {
    await liveAs(homeOf('home'), 'a');
    for (const schema of ['invoices', 'orders']) {
      await takeFeed(open(schema, 'home'), testFeed(), 'a');
      expect(await feedOf(schema, 'home')).toMatchObject({ holder: 'a', epoch: 1, status: { leaseHolder: 'a' } });
      expect(await open(schema, 'home').acquireLease(testFeed(), 'b')).toBeNull();
    }
    await createProcesses(homeOf('home')).removeProcess('a');
    for (const schema of ['invoices', 'orders']) {
      expect(await feedOf(schema, 'home')).toMatchObject({ holder: 'a', status: { leaseHolder: null } });
      expect(await open(schema, 'home').acquireLease(testFeed(), 'b')).toMatchObject({ holder: 'b', epoch: 2 });
    }
  });

  it('are taken by others only where the process cannot use the schema', async () => {
    await createProcesses(homeOf('home')).renewProcess({
      ...{ holder: 'a', feeds: 2, unusable: ['orders'], ttlMs: 30_000 },
    });
    for (const schema of ['invoices', 'orders']) await takeFeed(open(schema, 'home'), testFeed(), 'a');
    expect(await open('invoices', 'home').acquireLease(testFeed(), 'b')).toBeNull();
    expect(await open('orders', 'home').acquireLease(testFeed(), 'b')).toMatchObject({ holder: 'b' });
  });

  it('do not depend on processes that their own schema names', async () => {
    await liveAs(homeOf('invoices'), 'a');
    await takeFeed(open('invoices', 'home'), testFeed(), 'a');
    expect(await feedOf('invoices', 'home')).toMatchObject({ status: { leaseHolder: null } });
    expect(await open('invoices', 'home').acquireLease(testFeed(), 'b')).toMatchObject({ holder: 'b' });
  });

  it('store where their holder is until they are given back', async () => {
    const stored = () => setup.rows(sql`SELECT lease_holder, lease_home FROM invoices.feeds`);
    const store = open('invoices', 'home');
    const { lease } = await takeFeed(store, testFeed(), 'a');
    expect(await stored()).toEqual([{ lease_holder: 'a', lease_home: 'home' }]);
    await store.releaseLease(lease);
    expect(await stored()).toEqual([{ lease_holder: null, lease_home: null }]);
  });
});

describe('a feed of a process whose settings have another schema', () => {
  const HOMES = ['home', 'home "2"', 'invoices'] as const;

  it.each(HOMES.flatMap((of) => HOMES.filter((other) => other !== of).map((other) => [of, other] as const)))(
    'is refused with the remedy when its home is %s and not %s',
    async (of, other) => {
      await liveAs(homeOf(of), 'a');
      const feed = await takeFeed(open('invoices', of), testFeed(), 'a');
      const refused = open('invoices', other).acquireLease(testFeed(), 'b');
      await expect(refused).rejects.toMatchObject({ kind: 'processes_elsewhere', action: 'hold' });
      await expect(refused).rejects.toThrow(
        `the process a, whose SCANFEED_DATABASE_SCHEMA is ${of}, but here it is ${other}: set the same`,
      );
      expect(await feed.counts([entryJson({ scanId: `${of} ${other}` })])).toMatchObject({ inserted: 1 });
    },
  );

  it('is taken when the statement of the remedy has run', async () => {
    await liveAs(homeOf('invoices'), 'a');
    const feed = await takeFeed(open('home "2"', 'invoices'), testFeed(), 'a');
    const take = () => open('home "2"', 'home').acquireLease(testFeed(), 'b');
    const refusal: Error = await take().then(
      () => Promise.reject(),
      (error) => error,
    );
    const [, statement = ''] = /run (UPDATE .*)$/.exec(refusal.message) ?? [];
    await setup.rows(sql.raw(statement));
    expect(await take()).toMatchObject({ holder: 'b', epoch: 2 });
    expect(await feed.commit([entryJson()])).toEqual({ kind: 'fenced' });
  });

  it('is taken when it was given back', async () => {
    const store = open('invoices', 'home');
    await store.releaseLease((await takeFeed(store, testFeed(), 'a')).lease);
    expect(await open('invoices').acquireLease(testFeed(), 'b')).toMatchObject({ holder: 'b' });
  });
});

it('a feed counts as led for a command whose settings have another home, and is not forgotten', async () => {
  await liveAs(homeOf('home'), 'a');
  await takeFeed(open('invoices', 'home'), testFeed(), 'a');
  const command = connectStore(setup.database, 'invoices');
  expect((await createFeeds(command).find('default'))?.leader).toBe('a');
  expect(await forgetFeed(command, 'default', null)).toBe(false);
});
