import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { LeaseProcess } from '../../support/lease-process.js';
import { tables, useStore } from '../../support/store.js';

const bench = useStore();
const TTL_MS = 30_000;

beforeEach(async () => {
  await bench.rows(sql`DELETE FROM ${tables.processes}`);
});

describe('the announced processes', () => {
  const age = (holder: string, interval: string) =>
    bench.rows(sql`UPDATE ${tables.processes} SET expires_at = clock_timestamp() - ${interval}::interval
      WHERE holder = ${holder}`);

  it('are those that checked in and neither expired nor checked out', async () => {
    for (const holder of ['c', 'b', 'd']) await bench.store.checkIn(holder, 10, TTL_MS);
    expect(await bench.store.checkIn('a', 10, TTL_MS)).toEqual(['a', 'b', 'c', 'd']);
    await age('b', '1 second');
    await bench.store.checkOut('c');
    expect(await bench.store.checkIn('a', 10, TTL_MS)).toEqual(['a', 'd']);
    expect(await bench.store.checkIn('b', 10, TTL_MS)).toEqual(['a', 'b', 'd']);
  });

  it('store the number of their feeds', async () => {
    await bench.store.checkIn('a', 10, TTL_MS);
    await bench.store.checkIn('a', 11, TTL_MS);
    expect(await bench.rows(sql`SELECT holder, feeds FROM ${tables.processes}`)).toEqual([{ holder: 'a', feeds: 11 }]);
  });

  it('are deleted an hour after they expired', async () => {
    for (const holder of ['a', 'b']) await bench.store.checkIn(holder, 10, TTL_MS);
    await age('a', '61 minutes');
    await age('b', '59 minutes');
    await bench.store.checkIn('c', 10, TTL_MS);
    expect(await bench.rows(sql`SELECT holder FROM ${tables.processes} ORDER BY 1`)).toEqual([
      { holder: 'b' },
      { holder: 'c' },
    ]);
  });
});

it('a process leads all feeds within twice the time to live of a lease when the one that leads half of them is killed', async () => {
  const leaseTtlMs = 4_000;
  const feeds = Array.from({ length: 100 }, (_, n) => `shared-${n}`);
  const parts = { feeds, storeOf: () => bench.store, clock: systemClock, leaseTtlMs };
  const led = async (holder: string) => {
    const rows = await bench.rows(sql`SELECT FROM ${tables.feeds}
      WHERE lease_holder = ${holder} AND lease_expires_at > clock_timestamp()`);
    return rows.length;
  };
  const leads = (holder: string, number: number, timeout = 10_000) =>
    expect.poll(() => led(holder), { timeout, interval: 50 }).toBe(number);
  await bench.store.checkIn('second', feeds.length, TTL_MS); // so that the first one leaves it a half from the start
  const first = new LeaseProcess('first', parts);
  await leads('first', 50);
  const second = new LeaseProcess('second', parts);
  await leads('second', 50);
  first.kill();
  await leads('second', 100, 2 * leaseTtlMs);
  await second.stop();
  expect(await led('second')).toBe(0);
  expect(await bench.rows(sql`SELECT holder FROM ${tables.processes} WHERE holder = 'second'`)).toEqual([]);
}, 60_000);
