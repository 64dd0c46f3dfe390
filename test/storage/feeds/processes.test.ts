import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { createProcesses } from '../../../src/storage/feeds/processes.js';
import type { ProcessRenewal } from '../../../src/sync/ports/index.js';
import { LeaseProcess } from '../../support/lease-process.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { tables, useStore } from '../../support/store.js';

const setup = useStore();
const TTL_MS = 30_000;

const renew = (holder: string, over: Partial<ProcessRenewal> = {}) =>
  createProcesses(setup.connection).renewProcess({
    ...{ holder, feeds: 10, unusable: [], ttlMs: TTL_MS },
    ...over,
  });
const stored = () => setup.rows(sql<{ holder: string }>`SELECT holder FROM ${tables.processes} ORDER BY 1`);
/** Makes a row older: the clock of the database decides, and a test cannot move it. */
const age = (holder: string, interval: string) =>
  setup.rows(sql`UPDATE ${tables.processes} SET renewed_at = renewed_at - ${interval}::interval,
    expires_at = expires_at - ${interval}::interval WHERE holder = ${holder}`);
const timesOf = async (holder: string) =>
  (
    await setup.rows(
      sql<{ renewed: string; expires: string }>`SELECT renewed_at::text AS renewed, expires_at::text AS expires
        FROM ${tables.processes} WHERE holder = ${holder}`,
    )
  )[0];

beforeEach(async () => {
  await setup.rows(sql`DELETE FROM ${tables.feeds}`);
  await setup.rows(sql`DELETE FROM ${tables.processes}`);
});

describe('the living processes', () => {
  it('are those that have neither expired nor ended, and the one that asks', async () => {
    for (const holder of ['b', 'c', 'd']) await renew(holder, { feeds: 7 });
    await age('b', '31 seconds');
    await createProcesses(setup.connection).removeProcess('c');
    expect((await renew('a')).living).toEqual(
      new Map([
        ['a', 10],
        ['d', 7],
      ]),
    );
    expect([...(await renew('b')).living.keys()].sort()).toEqual(['a', 'b', 'd']);
  });

  it('do not include those that renewed before the clock was set back, until they renew again', async () => {
    await renew('killed');
    await age('killed', '-1 minute');
    expect([...(await renew('a')).living.keys()]).toEqual(['a']);
    await renew('killed');
    expect([...(await renew('a')).living.keys()].sort()).toEqual(['a', 'killed']);
  });
});

describe('the renewal of a process', () => {
  it('stores how many feeds it follows, the schemas that it cannot use, and when it expires', async () => {
    await renew('a', { feeds: 1, unusable: ['x'] });
    await renew('a', { feeds: 11, unusable: ['y', 'z'] });
    expect(
      await setup.rows(
        sql`SELECT holder, feeds, unusable, extract(epoch FROM expires_at - renewed_at)::float AS ttl FROM ${tables.processes}`,
      ),
    ).toEqual([{ holder: 'a', feeds: 11, unusable: ['y', 'z'], ttl: expect.closeTo(TTL_MS / 1000, 1) }]);
  });

  it('moves the expiry', async () => {
    await renew('a');
    await age('a', '10 seconds');
    const before = await timesOf('a');
    await renew('a');
    expect(await timesOf('a')).not.toEqual(before);
  });

  it('reports that it was not alive when its row is missing', async () => {
    expect(await renew('a')).toMatchObject({ wasAlive: false, clockWasSetBack: false });
  });

  it('reports that it was alive when its lease is valid', async () => {
    await renew('a');
    expect(await renew('a')).toMatchObject({ wasAlive: true, clockWasSetBack: false });
  });

  it('reports that it was not alive when its lease has expired', async () => {
    await renew('a');
    await age('a', '31 seconds');
    expect(await renew('a')).toMatchObject({ wasAlive: false, clockWasSetBack: false });
  });

  it('reports that the clock was set back when its row is of the future', async () => {
    await renew('a');
    await age('a', '-1 minute');
    expect(await renew('a')).toMatchObject({ wasAlive: false, clockWasSetBack: true });
  });

  it('deletes others an hour after they expired', async () => {
    for (const holder of ['a', 'b']) await renew(holder);
    await age('a', '61 minutes');
    await age('b', '59 minutes');
    await renew('c');
    expect(await stored()).toEqual([{ holder: 'b' }, { holder: 'c' }]);
  });

  it('does not wait for the rows of others when these are locked', async () => {
    for (const holder of ['old', 'alive']) await renew(holder);
    await age('old', '2 hours');
    const { living } = await setup.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.processes} FOR UPDATE`.execute(tx);
      return renew('a');
    });
    expect([...living.keys()].sort()).toEqual(['a', 'alive']);
    expect(await stored()).toEqual([{ holder: 'a' }, { holder: 'alive' }, { holder: 'old' }]);
    await renew('a');
    expect(await stored()).toEqual([{ holder: 'a' }, { holder: 'alive' }]);
  });

  it('succeeds for both processes when they wake at once, and both expired more than an hour ago', async () => {
    for (const holder of ['a', 'b']) await renew(holder);
    for (const holder of ['a', 'b']) await age(holder, '2 hours');
    // Both statements are at the insert of their own row at the same time.
    await setup.rows(sql`CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN new; END'`);
    await setup.rows(sql`CREATE TRIGGER wait BEFORE INSERT ON ${tables.processes}
      FOR EACH ROW EXECUTE FUNCTION wait_for_test()`);
    const renewals = await setup.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT pg_advisory_xact_lock(1)`.execute(tx);
      const renewing = Promise.allSettled([renew('a'), renew('b')]);
      await untilWaiting(setup.database.sql, 2);
      return { renewing };
    });
    const results = await renewals.renewing;
    await setup.rows(sql`DROP FUNCTION wait_for_test CASCADE`);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    expect(await stored()).toEqual([{ holder: 'a' }, { holder: 'b' }]);
  });
});

describe('two processes that share feeds', () => {
  const ttlMs = 3_000;
  const feeds = Array.from({ length: 100 }, (_, n) => `shared-${n}`);
  const start = (holder: string) =>
    new LeaseProcess(holder, {
      ...{ feeds, storeOf: () => setup.store, processes: createProcesses(setup.connection) },
      ...{ clock: systemClock, leaseTtlMs: ttlMs },
    });
  /** The feeds whose holder is alive, with their epochs. */
  const ledBy = (holder: string) =>
    setup.rows(sql`SELECT name, lease_epoch FROM ${tables.feeds} WHERE lease_holder = ${holder}
      AND EXISTS (SELECT FROM ${tables.processes} WHERE holder = lease_holder AND expires_at > clock_timestamp())
      ORDER BY name`);
  const leads = (holder: string, number: number, timeout = 10_000) =>
    expect.poll(async () => (await ledBy(holder)).length, { timeout, interval: 50 }).toBe(number);

  async function startBoth() {
    await renew('second', { feeds: feeds.length }); // so that the first one leaves it a half from the start
    const first = start('first');
    await leads('first', 50);
    const second = start('second');
    await leads('second', 50);
    return { first, second };
  }

  it('lead all feeds within twice the time to live of a lease when one of them is killed', async () => {
    const { first, second } = await startBoth();
    first.kill();
    await leads('second', 100, 2 * ttlMs);
    await second.stop();
    expect(await ledBy('second')).toEqual([]);
    expect(await setup.rows(sql`SELECT FROM ${tables.feeds} WHERE lease_holder IS NOT NULL`)).toEqual([]);
    expect(await setup.rows(sql`SELECT FROM ${tables.processes} WHERE holder = 'second'`)).toEqual([]);
  }, 60_000);

  it('keep their feeds when their rows are deleted', async () => {
    const { first, second } = await startBoth();
    const [ofFirst, ofSecond] = [await ledBy('first'), await ledBy('second')];
    await setup.rows(sql`TRUNCATE ${tables.processes}`);
    await leads('first', 50);
    await leads('second', 50);
    // For the time to live they must not take feeds, after it they could.
    const { now } = (await setup.rows(sql<{ now: string }>`SELECT clock_timestamp()::text AS now`))[0] ?? { now: '' };
    const renewedSince = () =>
      setup.rows(sql`SELECT FROM ${tables.processes}
        WHERE renewed_at > ${now}::timestamptz + ${ttlMs} * interval '1 millisecond'`);
    await expect.poll(async () => (await renewedSince()).length, { timeout: 4 * ttlMs }).toBe(2);
    expect(await ledBy('first')).toEqual(ofFirst);
    expect(await ledBy('second')).toEqual(ofSecond);
    await Promise.all([first.stop(), second.stop()]);
  }, 60_000);
});
