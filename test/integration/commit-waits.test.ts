import { type KyselyPlugin, type OperationNode, RawNode, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { Database } from '../../src/storage/pool.js';
import { createStore } from '../../src/storage/store.js';
import { batchOf, draftPage } from '../../src/sync/page-draft.js';
import type { CommitOutcome, EntryBatch, Freshness } from '../../src/sync/ports.js';
import { entryJson, pageJson } from '../support/entries.js';
import { untilWaiting } from '../support/lock-waits.js';
import { rawPage } from '../support/pages.js';
import { useDatabase } from '../support/postgres/index.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, takeFeed, testFeed, useStore } from '../support/store.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);
const HOUR = 3_600_000;

/** A store whose monotonic time the test sets. */
function storeAt(time: { now: number }, database = bench.database) {
  const settings = {
    schema: TEST_SCHEMA,
    leaseTtlMs: 30_000,
    pendingRetryMs: 30_000,
    keptDays: null,
    monotonic: () => time.now,
  };
  return createStore(database, settings);
}
const polledAt = (at: number): Freshness => ({
  atEnd: true,
  polledAt: at,
  lastDelivered: null,
  lastDeliveredAt: null,
});
const completeAsOf = async (feed: string) =>
  (
    await bench.rows(sql<{ age_ms: number; at: Date }>`
      SELECT data_complete_as_of AS at,
        extract(epoch FROM clock_timestamp() - data_complete_as_of)::double precision * 1000 AS age_ms
      FROM ${tables.feeds} WHERE name = ${feed}`)
  )[0];
function asOf(outcome: CommitOutcome) {
  if (outcome.kind === 'fenced') throw new Error('fenced');
  return outcome.asOf;
}

describe('freshness', () => {
  it('is no younger for the time that the commit waited for a lock', async () => {
    const time = { now: 0 };
    const feed = await takeFeed(storeAt(time), testFeed({ name: 'locked' }));
    const held = await bench.database.sql.transaction().execute(async (tx) => {
      // Changes the row, as a renewal does: a lock alone would not make the statement read its times again.
      await sql`UPDATE ${tables.feeds} SET lease_expires_at = clock_timestamp() WHERE name = 'locked'`.execute(tx);
      const commit = feed.commit([entryJson({ scanId: 'locked' })], { freshness: polledAt(time.now) });
      await untilWaiting(bench.database.sql, 1);
      time.now = HOUR;
      const { rows } = await sql<{ now: Date }>`SELECT clock_timestamp() AS now FROM pg_sleep(0.1)`.execute(tx);
      return { commit, at: rows[0]?.now ?? new Date(0) };
    });
    const outcome = asOf(await held.commit);
    expect(outcome.dataCompleteAsOf?.getTime()).toBeLessThan(held.at.getTime());
    expect(outcome.readAt).toBe(0);
    // By the database's clock: what it waited is lag.
    expect(outcome.lagMs).toBeGreaterThan(90);
  });

  it('is no younger for the time that the commit waited for a connection', async () => {
    const database = openTestDatabase(given.url, 1);
    const time = { now: 0 };
    try {
      const feed = await takeFeed(storeAt(time, database), testFeed({ name: 'queued' }));
      const commit = await database.sql.connection().execute(async () => {
        const begun = feed.commit([entryJson({ scanId: 'queued' })], { freshness: polledAt(time.now) });
        await expect.poll(() => database.usage().waiting).toBe(1);
        time.now = HOUR;
        return { begun };
      });
      expect(asOf(await commit.begun).readAt).toBe(HOUR);
      expect((await completeAsOf('queued'))?.age_ms).toBeGreaterThanOrEqual(HOUR);
    } finally {
      await database.close();
    }
  });

  it('of a page with nothing to write is no younger either', async () => {
    const time = { now: 0 };
    const feed = await takeFeed(storeAt(time), testFeed({ name: 'empty' }));
    const held = await bench.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.feeds} WHERE name = 'empty' FOR UPDATE`.execute(tx);
      const commit = feed.commit([], { freshness: polledAt(time.now) });
      await untilWaiting(bench.database.sql, 1);
      time.now = HOUR;
      return { commit };
    });
    expect(asOf(await held.commit).readAt).toBe(0);
  });
});

describe('two feeds that store the same new run at the same moment', () => {
  /** Both have judged their entry as new before either is written: they queue for the clock, which the test holds. */
  async function together<A, B>(
    first: () => Promise<A>,
    second: () => Promise<B>,
    meanwhile = () => {},
  ): Promise<[A, B]> {
    const queued = await bench.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.changeClock} FOR UPDATE`.execute(tx);
      const one = first();
      await untilWaiting(bench.database.sql, 1);
      const two = second();
      await untilWaiting(bench.database.sql, 2);
      meanwhile();
      return [one, two] as const;
    });
    return Promise.all(queued);
  }
  const batch = (entries: readonly string[]): EntryBatch => {
    const draft = draftPage(rawPage(pageJson(entries)));
    return batchOf(draft.entries, draft);
  };
  const row = async (scanId: string) =>
    (await bench.rows(sql<Record<string, unknown>>`SELECT * FROM ${tables.runs} WHERE scan_id = ${scanId}`))[0];

  it('the one that comes second completes what the first stored less completely', async () => {
    const bare = await bench.takeFeed({ name: 'bare' });
    const full = await bench.takeFeed({ name: 'full' });
    const [one, two] = await together(
      () => bare.counts([entryJson({ scanId: 'both' })]),
      () =>
        full.counts([entryJson({ scanId: 'both', markdown: '# Rechnung' }), entryJson({ scanId: 'own' })], {
          to: 'on',
        }),
    );
    expect(one).toMatchObject({ inserted: 1 });
    expect(two).toMatchObject({ inserted: 1, updated: 1, unchanged: 0, stale: 0, conflicts: 0 });
    // The other was stored by the first, and only filled.
    expect(two).toMatchObject({ stored: ['own'] });
    expect(await row('both')).toMatchObject({ markdown: '# Rechnung', feed: 'full' });
    expect(await bench.store.readPosition('full')).toMatchObject({ cursor: 'on' });
  });

  it('the second is counted as what it was: unchanged, in conflict, stale, or newer', async () => {
    const a = await bench.takeFeed({ name: 'a' });
    const b = await bench.takeFeed({ name: 'b' });
    const entries = (over: Record<string, Record<string, unknown>>) =>
      Object.entries(over).map(([scanId, fields]) => entryJson({ scanId, ...fields }));
    const [, two] = await together(
      () => a.counts(entries({ same: {}, other: { data: { a: 1 } }, older: { revision: 2 }, newer: {} })),
      () => b.counts(entries({ same: {}, other: { data: { a: 2 } }, older: {}, newer: { revision: 2 } })),
    );
    expect(two).toMatchObject({ inserted: 0, updated: 1, unchanged: 2, conflicts: 1, stale: 1, stored: ['newer'] });
    expect(await row('other')).toMatchObject({ data: { a: 1 }, feed: 'a' });
  });

  it('results that were loaded later are judged again, too', async () => {
    const a = await bench.takeFeed({ name: 'a' });
    const b = await bench.takeFeed({ name: 'b' });
    const draft = (over: Record<string, unknown>) => batch([entryJson({ scanId: 'loaded', ...over })]);
    const [, two] = await together(
      () => bench.store.commitResults(a.lease, draft({})),
      () => bench.store.commitResults(b.lease, draft({ markdown: '# Rechnung' })),
    );
    expect(two).toMatchObject({ counts: { updated: 1, stale: 0 } });
    expect(await row('loaded')).toMatchObject({ markdown: '# Rechnung' });
  });

  it('the second is sent anew, with the ages of that time, and then allows for the other for an hour', async () => {
    const time = { now: 0 };
    const sent: Form[] = [];
    const one = await bench.takeFeed({ name: 'early' });
    const two = await takeFeed(
      storeAt(
        time,
        noting((form) => sent.push(form)),
      ),
      testFeed({ name: 'late' }),
    );
    /** What was sent for the second, which met the first and waited for it until then. */
    const meet = async (scanId: string, until: number) => {
      sent.splice(0);
      const entries = [entryJson({ scanId })];
      const [, outcome] = await together(
        () => one.commit(entries),
        () => two.commit(entries, { freshness: polledAt(0) }),
        () => {
          time.now = until;
        },
      );
      expect(asOf(outcome).readAt).toBe(until);
      return [...sent];
    };
    // The rows, once more what the other had stored meanwhile, and the position behind them.
    const allowedFor = ['rows', 'rows', 'position'];
    expect(await meet('first', HOUR)).toEqual(['plain', 'rows', 'position']);
    expect((await completeAsOf('late'))?.age_ms).toBeGreaterThanOrEqual(HOUR);
    expect(await meet('allowed for', 2 * HOUR - 1)).toEqual(allowedFor);
    time.now = 3 * HOUR - 2;
    expect(await meet('still allowed for', 3 * HOUR - 1)).toEqual(allowedFor);
    time.now = 4 * HOUR - 1;
    expect(await meet('forgotten', 4 * HOUR)).toEqual(['plain', 'rows', 'position']);
  });

  it('a stored one that the first raised is judged anew by the second before its position moves', async () => {
    const sent: Form[] = [];
    const a = await bench.takeFeed({ name: 'a' });
    const noted = noting((form) => sent.push(form));
    const b = await takeFeed(storeAt({ now: 0 }, noted), testFeed({ name: 'b' }));
    await a.counts([entryJson({ scanId: 'raised' })]);
    const [one, two] = await together(
      () => a.counts([entryJson({ scanId: 'raised', revision: 2 })]),
      () => b.counts([entryJson({ scanId: 'raised', revision: 2, markdown: '# Rechnung' })], { to: 'on' }),
    );
    expect(sent).toEqual(['plain', 'rows', 'position']);
    expect([one, two]).toMatchObject([{ updated: 1 }, { updated: 1, stale: 0 }]);
    expect(await row('raised')).toMatchObject({ revision: 2, markdown: '# Rechnung', feed: 'b' });
    expect(await bench.store.readPosition('b')).toMatchObject({ cursor: 'on' });
  });

  it('a sweep that comes second moves on behind what it wrote', async () => {
    const sent: Form[] = [];
    const a = await bench.takeFeed({ name: 'a' });
    const noted = noting((form) => sent.push(form));
    const store = storeAt({ now: 0 }, noted);
    const { lease } = await takeFeed(store, testFeed({ name: 'swept' }));
    await bench.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = now() WHERE name = 'swept'`);
    const sweep = { lease, kind: 'window', from: null, to: 'on', finished: false, quarantine: [] } as const;
    await store.beginSweep(lease, { kind: 'window', since: null, until: new Date(), completeAsOf: new Date() });
    const standing = async () => (await store.readSweeps('swept')).find(({ kind }) => kind === 'window');
    const id = (await standing())?.id ?? '';
    const [, second] = await together(
      () => a.counts([entryJson({ scanId: 'swept' })]),
      () => store.commitSweep({ ...sweep, id, batch: batch([entryJson({ scanId: 'swept', markdown: '# Rechnung' })]) }),
    );
    expect(sent).toEqual(['plain', 'rows', 'position']);
    expect(second).toMatchObject({ counts: { updated: 1 } });
    expect(await standing()).toMatchObject({ cursor: 'on' });
  });

  it('nothing is written by the second where its position was moved by another', async () => {
    const a = await bench.takeFeed({ name: 'a' });
    const b = await bench.takeFeed({ name: 'b' });
    await together(
      () => a.counts([entryJson({ scanId: 'met there' })]),
      () => b.counts([entryJson({ scanId: 'met there' })]),
    );
    expect(await b.commit([entryJson({ scanId: 'elsewhere' })], { from: 'elsewhere' })).toEqual({ kind: 'fenced' });
    expect(await row('elsewhere')).toBeUndefined();
  });

  it('the position of the second stays where it was if what it must write again cannot be sent', async () => {
    const sent: Form[] = [];
    let cutAfter = Number.POSITIVE_INFINITY;
    const noted = noting((form) => {
      if (sent.length === cutAfter) throw new Error('cut');
      sent.push(form);
    });
    const a = await bench.takeFeed({ name: 'a' });
    const b = await takeFeed(storeAt({ now: 0 }, noted), testFeed({ name: 'b' }));
    const entry = (scanId: string) => [entryJson({ scanId })];
    const fuller = (scanId: string) => [entryJson({ scanId, markdown: '# Rechnung' })];
    await together(
      () => a.counts(entry('met')),
      () => b.counts(fuller('met'), { to: 'met' }),
    );
    sent.splice(0);
    cutAfter = 1;
    const [, refused] = await together(
      () => a.counts(entry('cut')),
      () => b.counts(fuller('cut'), { to: 'on' }).catch((error: unknown) => error),
    );
    expect(refused).toBeInstanceOf(Error);
    expect(sent).toEqual(['rows']);
    expect(await bench.store.readPosition('b')).toMatchObject({ cursor: 'met' });
    cutAfter = Number.POSITIVE_INFINITY;
    expect(await b.counts(fuller('cut'), { to: 'on' })).toMatchObject({ updated: 1 });
    expect(await bench.store.readPosition('b')).toMatchObject({ cursor: 'on' });
  });
});

it('a run that somebody else’s trigger keeps from being stored does not pass', async () => {
  await sql`CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`.execute(
    bench.database.sql,
  );
  await sql`CREATE TRIGGER swallow BEFORE INSERT ON ${tables.runs} FOR EACH ROW WHEN (NEW.scan_id = 'swallowed')
    EXECUTE FUNCTION swallow()`.execute(bench.database.sql);
  const feed = await bench.takeFeed({ name: 'swallowing' });
  await expect(feed.commit([entryJson({ scanId: 'swallowed' }), entryJson({ scanId: 'other' })])).rejects.toMatchObject(
    {
      kind: 'serialization',
      remedy: 'retry',
      message: expect.stringContaining('a trigger on'),
    },
  );
  expect(await bench.store.readPosition('swallowing')).toMatchObject({ cursor: null });
  await sql`DROP FUNCTION swallow CASCADE`.execute(bench.database.sql);
  expect(await feed.counts([entryJson({ scanId: 'swallowed' }), entryJson({ scanId: 'other' })])).toMatchObject({
    inserted: 1,
  });
});

/** What a statement of a commit writes: everything at once, rows alone, or the position alone. */
type Form = 'plain' | 'rows' | 'position';

/** The database, where what is sent for commits is noted before. */
function noting(note: (form: Form) => void): Database {
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => {
      const text = textOf(node);
      if (text.includes('fresh AS (')) note('plain');
      else if (text.includes('judged AS')) note('rows');
      else if (text.includes('SELECT fence.*')) note('position');
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { ...bench.database, sql: bench.database.sql.withPlugin(plugin) };
}

function textOf(node: OperationNode): string {
  return RawNode.is(node) ? [...node.sqlFragments, ...node.parameters.map(textOf)].join(' ') : '';
}
