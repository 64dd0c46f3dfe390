import { type RawBuilder, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { requestBackfill } from '../../src/storage/request-backfill.js';
import type { CommitOutcome } from '../../src/sync/ports.js';
import { concurrently, entriesOf, pageOf } from '../support/concurrent-commits.js';
import { entryJson } from '../support/entries.js';
import { tables, useStore } from '../support/store.js';

const bench = useStore();
const AT_END = { atEnd: true, polledAt: 0, lastDelivered: null, lastDeliveredAt: null };

/** Transactions that last wrote these rows, each once. */
async function writersOf(rows: RawBuilder<unknown>): Promise<readonly string[]> {
  const found = await bench.rows(sql<{ xmin: string }>`SELECT DISTINCT written.xmin::text FROM ${rows}`);
  return found.map(({ xmin }) => xmin);
}
const runsOf = (feed: string) => sql`${tables.runs} AS written WHERE feed = ${feed}`;
const feedOf = (feed: string) => sql`${tables.feeds} AS written WHERE name = ${feed}`;

describe('two feeds that store the same scans at the same time', () => {
  it('write every row of a page in the transaction that moves its position', async () => {
    const one = await bench.takeFeed({ name: 'first' });
    const two = await bench.takeFeed({ name: 'second' });
    const stored = { raised: {}, completed: {} };
    await one.counts(entriesOf(stored));
    await concurrently(
      bench.database.sql,
      () => one.counts(entriesOf({ both: {}, older: {}, raised: { revision: 2 } })),
      () =>
        two.counts([
          ...entriesOf({ own: {}, both: { markdown: '# Rechnung' }, older: { revision: 2 }, raised: { revision: 3 } }),
          ...entriesOf({ completed: { markdown: '# Rechnung' } }),
          'null',
        ]),
    );
    const found = await bench.rows(sql<{ scan_id: string }>`SELECT scan_id FROM ${runsOf('second')} ORDER BY scan_id`);
    expect(found.map((run) => run.scan_id)).toEqual(['both', 'completed', 'older', 'own', 'raised']);
    const [position] = await writersOf(feedOf('second'));
    expect(await writersOf(runsOf('second'))).toEqual([position]);
    for (const table of [tables.quarantine, tables.cursorHistory]) {
      expect(await writersOf(sql`${table} AS written WHERE feed = 'second'`)).toEqual([position]);
    }
  });

  it('write every row of a sweep’s page in the transaction that moves its position', async () => {
    const one = await bench.takeFeed({ name: 'beside a sweep' });
    const { lease } = await bench.takeFeed({ name: 'swept' });
    await bench.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = now() WHERE name = 'swept'`);
    await bench.store.beginSweep(lease, { kind: 'window', since: null, until: new Date(), completeAsOf: new Date() });
    const position = async () => (await bench.store.readSweeps('swept')).find(({ kind }) => kind === 'window');
    const sweep = { lease, kind: 'window', id: (await position())?.id ?? '', from: null, to: 'on' } as const;
    const page = pageOf(entriesOf({ swept: { markdown: '# Rechnung' }, 'swept alone': {} }));
    const [, outcome] = await concurrently(
      bench.database.sql,
      () => one.counts(entriesOf({ swept: {} })),
      () => bench.store.commitSweep({ ...sweep, finished: false, ...page }),
    );
    expect(outcome).toMatchObject({ counts: { inserted: 1, updated: 1 } });
    expect(await position()).toMatchObject({ cursor: 'on' });
    const writers = await writersOf(sql`${tables.sweeps} AS written WHERE feed = 'swept' AND kind = 'window'`);
    expect(await writersOf(runsOf('swept'))).toEqual(writers);
  });

  it('write every row of a backfill’s page in the transaction that moves its position', async () => {
    const one = await bench.takeFeed({ name: 'beside a backfill' });
    const { lease, commit } = await bench.takeFeed({ name: 'backfilled' });
    await commit([], { freshness: { ...AT_END, polledAt: performance.now() } });
    await requestBackfill(bench.database.sql, tables, 'backfilled', null, null);
    const backfill = await bench.store.nextBackfill('backfilled');
    if (backfill === null) throw new Error('no backfill was requested');
    const told = { deliveredUpTo: null, entries: 2, feedHadCursor: true, pace: null };
    const page = pageOf(entriesOf({ filled: { markdown: '# Rechnung' }, 'filled alone': {} }));
    const { id, until } = backfill;
    const [, outcome] = await concurrently(
      bench.database.sql,
      () => one.counts(entriesOf({ filled: {} })),
      () => bench.store.commitBackfill({ lease, id, until, from: null, to: 'on', finished: false, ...told, ...page }),
    );
    expect(outcome).toMatchObject({ counts: { inserted: 1, updated: 1 } });
    expect(await bench.store.nextBackfill('backfilled')).toMatchObject({ cursor: 'on', entries: 2, stored: 2 });
    const writers = await writersOf(sql`${tables.backfills} AS written WHERE feed = 'backfilled'`);
    expect(await writersOf(runsOf('backfilled'))).toEqual(writers);
  });

  it('write every row in the transaction that moves past it when they race through one history', async () => {
    const { sql: db } = bench.database;
    const scans = Array.from({ length: 60 }, (_, n) => `raced-${n}`);
    await sql`CREATE TABLE moves (feed text, cursor text, by xid8 DEFAULT pg_current_xact_id())`.execute(db);
    await sql`CREATE TABLE writes (feed text, scan_id text, by xid8 DEFAULT pg_current_xact_id())`.execute(db);
    await sql`CREATE FUNCTION note_move() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN INSERT INTO moves VALUES (NEW.name, NEW.cursor); RETURN NULL; END'`.execute(db);
    await sql`CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN INSERT INTO writes VALUES (NEW.feed, NEW.scan_id); RETURN NULL; END'`.execute(db);
    await sql`CREATE TRIGGER note AFTER UPDATE ON ${tables.feeds} FOR EACH ROW WHEN (NEW.cursor IS DISTINCT FROM OLD.cursor)
      EXECUTE FUNCTION note_move()`.execute(db);
    await sql`CREATE TRIGGER note AFTER INSERT OR UPDATE ON ${tables.runs} FOR EACH ROW EXECUTE FUNCTION note_write()`.execute(
      db,
    );
    /** Commits the history in pages of one size, which the cursors name. */
    const reader = async (name: string, size: number, revision: (n: number) => number) => {
      const feed = await bench.takeFeed({ name });
      return async (from: number, until: number) => {
        for (let at = from; at < until; at += size) {
          const page = scans.slice(at, at + size);
          const entries = page.map((scanId, n) => entryJson({ scanId, revision: revision(n) }));
          await retried(() => feed.commit(entries, { to: page.join(' ') }));
        }
      };
    };
    const racing = await reader('racing', 6, (n) => 1 + (n % 2));
    const chasing = await reader('chasing', 10, (n) => 1 + (n % 3));
    await concurrently(
      bench.database.sql,
      () => racing(0, 6),
      () => chasing(0, 10),
    );
    await Promise.all([racing(6, scans.length), chasing(10, scans.length)]);
    await sql`DROP FUNCTION note_move, note_write CASCADE`.execute(db);
    expect(await bench.rows(sql`SELECT DISTINCT scan_id FROM writes`)).toHaveLength(scans.length);
    const apart = sql`SELECT * FROM writes WHERE NOT EXISTS (
      SELECT FROM moves WHERE moves.by = writes.by AND moves.feed = writes.feed
        AND writes.scan_id = ANY (string_to_array(moves.cursor, ' ')))`;
    expect(await bench.rows(apart)).toEqual([]);
  });
});

/** Tries again like the engine where the other feed interfered too often. */
async function retried(commit: () => Promise<CommitOutcome>): Promise<CommitOutcome> {
  for (;;) {
    const outcome = await commit().catch((error: { kind?: unknown }) => {
      if (error.kind !== 'serialization') throw error;
      return null;
    });
    if (outcome !== null) return outcome;
  }
}
