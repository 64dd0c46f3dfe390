import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { tables, testFeed, useStore } from '../support/store.js';

const bench = useStore();
const TTL = 30_000;
const take = (holder: string) => bench.store.acquireLease(testFeed(), holder, TTL);
/** The database's clock decides; to a test it is easier to move the lease than the clock. */
const expire = () =>
  bench.rows(sql`UPDATE ${tables.feeds} SET lease_expires_at = clock_timestamp() - interval '1 millisecond'`);

beforeEach(async () => {
  await bench.rows(sql`DELETE FROM ${tables.feeds}`);
});

describe('the lease of a feed', () => {
  it('goes to one of several that ask at once', async () => {
    const leases = await Promise.all(['a', 'b', 'c', 'd'].map(take));
    expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
  });

  it('stays with its holder, who may take it again and raises the epoch', async () => {
    expect(await take('a')).toMatchObject({ epoch: 1 });
    expect(await take('b')).toBeNull();
    expect(await take('a')).toMatchObject({ epoch: 2 });
  });

  it('goes to another when it is silent for too long; the old holder can no longer renew or give it back', async () => {
    const old = await take('a');
    await expire();
    const taken = await take('b');
    expect(taken).toMatchObject({ holder: 'b', epoch: 2 });
    if (old === null || taken === null) throw new Error('no lease');
    expect(await bench.store.renewLease(old, TTL)).toBe(false);
    await bench.store.releaseLease(old);
    expect((await bench.store.readStatus('default')).leaseHolder).toBe('b');
    expect(await bench.store.renewLease(taken, TTL)).toBe(true);
  });

  it('may be renewed after it expired, while nobody else has taken it', async () => {
    const lease = await take('a');
    await expire();
    expect(lease && (await bench.store.renewLease(lease, TTL))).toBe(true);
    expect(await take('b')).toBeNull();
  });

  it('is free at once when it is given back', async () => {
    const lease = await take('a');
    if (lease === null) throw new Error('no lease');
    await bench.store.releaseLease(lease);
    expect(await take('b')).toMatchObject({ holder: 'b' });
  });
});

describe('where a feed starts', () => {
  const startOf = async () => (await bench.store.readPosition('default')).since;

  it('is decided at the very first start and kept', async () => {
    const start = new Date('2026-01-01T00:00:00Z');
    await bench.store.acquireLease(testFeed({ start }), 'a', TTL);
    await bench.store.acquireLease(testFeed({ start: 'beginning' }), 'a', TTL);
    expect(await startOf()).toEqual(start);
    expect(await bench.rows(sql`SELECT complete_from FROM ${tables.feeds}`)).toEqual([{ complete_from: start }]);
  });

  it('is an hour before the first start where new runs alone are wanted', async () => {
    await bench.store.acquireLease(testFeed({ start: 'now' }), 'a', TTL);
    const [row] = await bench.rows(
      sql`SELECT created_at - start_since BETWEEN interval '1 hour' AND interval '61 minutes' AS right FROM ${tables.feeds}`,
    );
    expect(row).toEqual({ right: true });
  });

  it('is the beginning otherwise', async () => {
    await take('a');
    expect(await startOf()).toBeNull();
    const rows = await bench.rows(sql`SELECT complete_from::text FROM ${tables.feeds}`);
    expect(rows).toEqual([{ complete_from: '-infinity' }]);
  });
});

it('changed filters are stored with the time of the change, unchanged ones leave it alone', async () => {
  const since = async () =>
    (await bench.rows(sql<{ at: string }>`SELECT filters_since::text AS at FROM ${tables.feeds}`))[0];
  await take('a');
  const first = await since();
  await take('a');
  expect(await since()).toEqual(first);
  const filters = { status: ['failed'], environment: 'all', documentType: null } as const;
  await bench.store.acquireLease(testFeed({ filters }), 'a', TTL);
  expect(await since()).not.toEqual(first);
});
