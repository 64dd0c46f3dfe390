import { type RawBuilder, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { CommitOutcome } from '../../../src/sync/ports/index.js';
import { concurrently, entriesOf } from '../../support/concurrent-commits.js';
import { entryJson } from '../../support/entries.js';
import { feedAtEnd, nextPass, passCommit } from '../../support/passes.js';
import { tables, useStore } from '../../support/store.js';

const setup = useStore();

/** Returns the distinct transactions that last wrote these rows. */
async function writersOf(rows: RawBuilder<unknown>): Promise<readonly string[]> {
  const found = await setup.rows(sql<{ xmin: string }>`SELECT DISTINCT written.xmin::text FROM ${rows}`);
  return found.map(({ xmin }) => xmin);
}
const runsOf = (feed: string) => sql`${tables.runs} AS written WHERE feed = ${feed}`;
const feedOf = (feed: string) => sql`${tables.feeds} AS written WHERE name = ${feed}`;

describe('two feeds that store the same scans at the same time', () => {
  it('write every row in the transaction that moves the position when a page is committed', async () => {
    const one = await setup.takeFeed({ name: 'first' });
    const two = await setup.takeFeed({ name: 'second' });
    const stored = { raised: {}, completed: {} };
    await one.counts(entriesOf(stored));
    await concurrently(
      setup.database.sql,
      () => one.counts(entriesOf({ both: {}, older: {}, raised: { revision: 2 } })),
      () =>
        two.counts([
          ...entriesOf({ own: {}, both: { markdown: '# Rechnung' }, older: { revision: 2 }, raised: { revision: 3 } }),
          ...entriesOf({ completed: { markdown: '# Rechnung' } }),
          'null',
        ]),
    );
    const found = await setup.rows(sql<{ scan_id: string }>`SELECT scan_id FROM ${runsOf('second')} ORDER BY scan_id`);
    expect(found.map((run) => run.scan_id)).toEqual(['both', 'completed', 'older', 'own', 'raised']);
    const [position] = await writersOf(feedOf('second'));
    expect(await writersOf(runsOf('second'))).toEqual([position]);
    for (const table of [tables.quarantine, tables.cursorHistory]) {
      expect(await writersOf(sql`${table} AS written WHERE feed = 'second'`)).toEqual([position]);
    }
  });

  it.each(['recent', 'full', 'history', 'backfill'] as const)(
    'write every row of a page of a %s pass in the transaction that moves its position',
    async (kind) => {
      const name = `${kind} pass`;
      const one = await setup.takeFeed({ name: `beside a ${name}` });
      const { lease } = await feedAtEnd(setup, { name, start: kind === 'history' ? 'live' : 'beginning' });
      const range = { since: null, until: new Date() };
      if (kind === 'backfill') await setup.operatorStore.passes.requestBackfill(name, range);
      if (kind === 'recent' || kind === 'full') {
        await setup.store.beginPass(lease, { kind, ...range, completeAsOf: new Date() });
      }
      const [both, alone] = [`${kind} both`, `${kind} alone`];
      const page = entriesOf({ [both]: { markdown: '# Rechnung' }, [alone]: {} });
      const pass = await nextPass(setup, name, kind);
      const [, outcome] = await concurrently(
        setup.database.sql,
        () => one.counts(entriesOf({ [both]: {} })),
        () => setup.store.commitPass(passCommit(lease, pass, {}, page)),
      );
      expect(outcome).toMatchObject({ counts: { inserted: 1, updated: 1 } });
      expect(await nextPass(setup, name, kind)).toMatchObject({ cursor: 'on', entries: 2, stored: 2 });
      const writers = await writersOf(sql`${tables.passes} AS written WHERE feed = ${name} AND kind = ${kind}`);
      expect(writers).toHaveLength(1);
      expect(await writersOf(runsOf(name))).toEqual(writers);
    },
  );

  it('write every row in the transaction that moves past it when they read one history', async () => {
    const { sql: db } = setup.database;
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
    /** Commits the history in pages of one size, which is part of the cursors. */
    const reader = async (name: string, size: number, revision: (n: number) => number) => {
      const feed = await setup.takeFeed({ name });
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
      setup.database.sql,
      () => racing(0, 6),
      () => chasing(0, 10),
    );
    await Promise.all([racing(6, scans.length), chasing(10, scans.length)]);
    await sql`DROP FUNCTION note_move, note_write CASCADE`.execute(db);
    expect(await setup.rows(sql`SELECT DISTINCT scan_id FROM writes`)).toHaveLength(scans.length);
    const apart = sql`SELECT * FROM writes WHERE NOT EXISTS (
      SELECT FROM moves WHERE moves.by = writes.by AND moves.feed = writes.feed
        AND writes.scan_id = ANY (string_to_array(moves.cursor, ' ')))`;
    expect(await setup.rows(apart)).toEqual([]);
  });
});

/** Retries like the engine if the other feed has interfered too often. */
async function retried(commit: () => Promise<CommitOutcome>): Promise<CommitOutcome> {
  for (;;) {
    const outcome = await commit().catch((error: { kind?: unknown }) => {
      if (error.kind !== 'serialization') throw error;
      return null;
    });
    if (outcome !== null) return outcome;
  }
}
