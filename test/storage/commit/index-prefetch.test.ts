import { type KyselyPlugin, OperationNodeTransformer, sql, type ValueNode } from 'kysely';
import { expect, it } from 'vitest';
import type { Database } from '../../../src/storage/connection/pool.js';
import { createStore } from '../../../src/storage/store.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { openTestDatabase, TEST_SCHEMA, tables, useServerOfItsOwn } from '../../support/store.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const server = useServerOfItsOwn();
const MINUTE_MS = 60_000;
const scanIds = ['a', 'b', 'c'];
const storeSettings = { schema: TEST_SCHEMA, leaseTtlMs: 30_000, pendingRetryMs: 30_000, keptDays: null };

async function using<T>(connections: number, work: (database: Database) => Promise<T>): Promise<T> {
  const database = openTestDatabase(server.url, connections);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** How often the primary key of runs was searched so far. */
async function searches(): Promise<number> {
  return using(1, async ({ sql: db }) => {
    // They tell what they did when they end.
    const others = sql`
      SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;
    await expect.poll(async () => (await others.execute(db)).rows, { timeout: 60_000 }).toEqual([]);
    const { rows } = await sql<{ scans: number }>`
      SELECT idx_scan::int AS scans FROM pg_stat_user_indexes WHERE indexrelname = 'runs_pkey'`.execute(db);
    return rows[0]?.scans ?? 0;
  });
}

/** How often it was searched by this work, with so many connections at most. */
async function searchesOf(connections: number, work: (database: Database) => Promise<void>): Promise<number> {
  const before = await searches();
  await using(connections, work);
  return (await searches()) - before;
}

/** Runs whose index has some 100 MB: their scan ids are long, and hardly to be compressed. */
async function fillKeys({ sql: db }: Database): Promise<void> {
  await sql`
    INSERT INTO ${tables.runs} (scan_id, revision, status, environment, file_name, partner_test_mode, result_state, feed,
      repaired, first_synced_at, synced_at, change_seq)
    SELECT number || (
        SELECT string_agg(encode(sha256((number || '/' || part)::bytea), 'hex'), '') FROM generate_series(1, 36) AS part
      ), 1, 'completed', 'prod', 'a.pdf', false, 'complete', 'default', false, now(), now(), number
    FROM generate_series(1, 8000) AS number`.execute(db);
}

it('the keys of announced scans are looked up once their index has outgrown the memory, and where connections are to spare', async () => {
  const clock = new VirtualClock();
  const announcing = (database: Database) =>
    createStore(database, { ...storeSettings, monotonic: clock.monotonic }).prefetchKeys;

  const growing = await searchesOf(3, async (database) => {
    const prefetchKeys = announcing(database);
    await prefetchKeys(scanIds); // it fits
    await fillKeys(database);
    await prefetchKeys(scanIds); // what was seen holds for a minute
    await clock.advance(MINUTE_MS);
    await prefetchKeys(scanIds);
  });
  const once = await searchesOf(3, (database) => announcing(database)(scanIds));
  expect(once).toBeGreaterThan(0);
  expect(growing).toBe(once);

  const scarce = await searchesOf(3, async (database) => {
    await database.sql.connection().execute(() => announcing(database)(scanIds));
  });
  expect(scarce).toBe(0);

  const failing = await searchesOf(3, async (database) => {
    const prefetchKeys = announcing(database);
    const rename = (from: string, to: string) =>
      sql`ALTER TABLE ${tables.runs} RENAME COLUMN ${sql.id(from)} TO ${sql.id(to)}`.execute(database.sql);
    await rename('revision', 'other');
    await expect(prefetchKeys(scanIds)).rejects.toMatchObject({ sqlstate: '42703' });
    await rename('other', 'revision');
    await prefetchKeys(scanIds); // not tried again with each page
    await clock.advance(MINUTE_MS);
    await prefetchKeys(scanIds);
  });
  expect(failing).toBe(once);
});

it('what is announced while two look-ups are under way goes with the next one, the last ten pages of it', async () => {
  await usingLargeTable(async (database, prefetchKeys, lookedUp) => {
    const held = await whileLocked(async () => {
      const underWay = [prefetchKeys(['a']), prefetchKeys(['b'])];
      await expect.poll(() => database.usage().active).toBe(2);
      for (let page = 1; page <= 12; page++) await prefetchKeys([`${page}`, `${page}, too`]);
      return underWay;
    });
    await Promise.all(held);
    const lastTen = Array.from({ length: 10 }, (_, index) => [`${index + 3}`, `${index + 3}, too`]);
    expect(lookedUp).toEqual([['first'], ['a'], ['b'], lastTen.flat()]);
  });
});

it('what waits where connections become scarce is left to the commit, and not looked up after it', async () => {
  await usingLargeTable(async (database, prefetchKeys, lookedUp) => {
    let giveBack = () => {};
    const scarcity = new Promise<void>((resolve) => {
      giveBack = resolve;
    });
    const [held, taken] = await whileLocked(async () => {
      const underWay = [prefetchKeys(['a']), prefetchKeys(['b'])];
      await expect.poll(() => database.usage().active).toBe(2);
      await prefetchKeys(['waiting']);
      const others = Array.from({ length: 6 }, () => database.sql.connection().execute(() => scarcity));
      await expect.poll(() => database.usage().active).toBe(8);
      return [underWay, others] as const;
    });
    await Promise.all(held);
    giveBack();
    await Promise.all(taken);
    await prefetchKeys(['next']);
    expect(lookedUp).toEqual([['first'], ['a'], ['b'], ['next']]);
  });
});

it('a look-up that fails ends those that wait', async () => {
  await usingLargeTable(async (_, prefetchKeys, lookedUp) => {
    const held = await whileLocked(async () => {
      const underWay = [prefetchKeys(['a']), prefetchKeys(['b'])];
      const oneFails = expect(Promise.race(underWay)).rejects.toMatchObject({ sqlstate: '57014' });
      await using(1, async ({ sql: db }) => {
        await untilWaiting(db, 2);
        await prefetchKeys(['waiting']);
        await sql`
          SELECT pg_cancel_backend(pid) FROM pg_stat_activity
          WHERE wait_event_type = 'Lock' AND datname = current_database() LIMIT 1`.execute(db);
      });
      await oneFails;
      return underWay;
    });
    await Promise.allSettled(held);
    expect(lookedUp).toEqual([['first'], ['a'], ['b']]);
  });
});

/** Eight connections, and a store that has seen that the index outgrew the memory; `lookedUp`: each look-up's scan ids. */
async function usingLargeTable(
  work: (database: Database, prefetchKeys: (scanIds: string[]) => Promise<void>, lookedUp: string[][]) => Promise<void>,
): Promise<void> {
  await using(8, async (database) => {
    await sql`DELETE FROM ${tables.runs}`.execute(database.sql);
    await fillKeys(database);
    const lookedUp: string[][] = [];
    const { prefetchKeys } = createStore(
      { ...database, sql: database.sql.withPlugin(arraysGiven(lookedUp)) },
      { ...storeSettings, monotonic: new VirtualClock().monotonic },
    );
    await prefetchKeys(['first']);
    await work(database, prefetchKeys, lookedUp);
  });
}

/** While another connection keeps everybody from reading the runs. */
async function whileLocked<T>(work: () => Promise<T>): Promise<T> {
  return using(1, ({ sql: db }) =>
    db.transaction().execute(async (transaction) => {
      await sql`LOCK TABLE ${tables.runs} IN ACCESS EXCLUSIVE MODE`.execute(transaction);
      return work();
    }),
  );
}

/** Notes the arrays that statements have as parameters. */
function arraysGiven(arrays: string[][]): KyselyPlugin {
  class Listener extends OperationNodeTransformer {
    override transformValue(node: ValueNode): ValueNode {
      if (Array.isArray(node.value)) arrays.push(node.value);
      return node;
    }
  }
  return {
    transformQuery: ({ node, queryId }) => new Listener().transformNode(node, queryId),
    transformResult: async ({ result }) => result,
  };
}
