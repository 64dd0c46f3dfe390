import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import * as forget from '../../../src/cli/commands/forget.js';
import { type CommandSetting, runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { commitPending } from '../../support/pending.js';
import { findPgBouncer, startPgBouncer } from '../../support/pgbouncer.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, type TestFeed, tables, testFeed, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
let former: TestFeed;
let other: TestFeed;

/** An entry that cannot be stored. */
const unusable = (scanId: string) => entryJson({ scanId, status: 'odd' });
const run = (args: string, setting: Partial<CommandSetting> = {}) =>
  runCommand(forget, ['forget', ...args.split(' ')], { env: { DATABASE_URL: given.url }, ...setting });
const feedsOf = async (table: keyof typeof tables, column = 'feed') =>
  (await setup.rows<{ feed: string }>(sql`SELECT ${sql.id(column)} AS feed FROM ${tables[table]} ORDER BY 1`)).map(
    ({ feed }) => feed,
  );
const everything = () =>
  Promise.all(
    [tables.feeds, tables.runs, tables.quarantine, tables.cursorHistory, tables.passes].map((table) =>
      setup.rows(sql`SELECT t.*, xmin::text, xmax::text FROM ${table} AS t ORDER BY t::text`),
    ),
  );

beforeEach(async () => {
  await setup.rows(sql`TRUNCATE ${tables.feeds}, ${tables.runs}, ${tables.quarantine} RESTART IDENTITY`);
  former = await setup.takeFeed({ name: 'former', start: 'live' });
  other = await setup.takeFeed({ name: 'other' });
  await former.commit([entryJson({ scanId: 'complete' }), unusable('bad')], { to: 'here' });
  await commitPending(former, { scanId: 'pending' });
  await other.commit([entryJson({ scanId: 'of the other' })]);
  await setup.store.releaseLease(former.lease);
});

describe('forget', () => {
  it('deletes the feed and hands its runs, pending results and quarantine to another one when --to names it', async () => {
    const [{ seq } = { seq: '' }] = await setup.rows<{ seq: string }>(
      sql`SELECT max(change_seq)::text AS seq FROM ${tables.runs}`,
    );
    expect(await run('former --to other --yes --json')).toEqual({
      exitCode: 0,
      out: '{"feed":"former","to":"other","dryRun":false,"runs":2,"pendingResults":1,"openEntries":1}\n',
      err: '',
    });
    expect(await feedsOf('feeds', 'name')).toEqual(['other']);
    expect(await feedsOf('runs')).toEqual(['other', 'other', 'other']);
    expect(await feedsOf('quarantine')).toEqual(['other']);
    expect(await feedsOf('cursorHistory')).toEqual(['other']);
    expect(await feedsOf('passes')).toEqual([]);
    await setup.rows(sql`UPDATE ${tables.runs} SET next_try_at = clock_timestamp() WHERE next_try_at IS NOT NULL`);
    expect((await setup.store.duePending('other', 10)).map(({ scanId }) => scanId)).toEqual(['pending']);
    expect(await setup.store.readStatus('other')).toMatchObject({ pendingResults: 1, quarantinedEntries: 1 });
    // Readers of changes see the new owner, and the other feed goes on.
    expect(
      await setup.rows(sql`SELECT scan_id FROM ${tables.runs} WHERE change_seq > ${seq}::bigint ORDER BY 1`),
    ).toEqual([{ scan_id: 'complete' }, { scan_id: 'pending' }]);
    expect(await other.commit([entryJson({ scanId: 'later' })])).toMatchObject({ kind: 'committed' });
    // A process that had frozen before cannot bring anything back.
    expect(await former.commit([entryJson({ scanId: 'too late' })])).toEqual({ kind: 'fenced' });
  });

  it('keeps the runs, says what nobody works on, and hands it over later', async () => {
    const { out } = await run('former --yes');
    expect(out).toContain('kept; no process works on them');
    expect(await feedsOf('feeds', 'name')).toEqual(['other']);
    expect(await feedsOf('runs')).toEqual(['former', 'former', 'other']);
    const again = await run('former --to other', { answer: 'y' });
    expect(again).toMatchObject({ exitCode: 0, err: expect.stringContaining('Feed former, already forgotten') });
    expect(await feedsOf('runs')).toEqual(['other', 'other', 'other']);
    expect(await run('former --to other --yes')).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('"former"'),
    });
  });

  it('keeps the open one when both feeds have an entry', async () => {
    await setup.rows(sql`INSERT INTO ${tables.quarantine} (feed, identity, scan_id, revision, reason, detail, payload, state)
      SELECT 'other', identity, scan_id, revision, reason, detail, '', 'discarded' FROM ${tables.quarantine}`);
    await former.commit([]);
    await setup.rows(sql`INSERT INTO ${tables.quarantine} (feed, identity, reason, detail, payload, state)
      SELECT name, 'same', '', '', '', CASE name WHEN 'former' THEN 'discarded' ELSE 'open' END FROM ${tables.feeds}`);
    await run('former --to other --yes');
    expect(
      await setup.rows(
        sql`SELECT feed, state, payload <> '' AS full FROM ${tables.quarantine} ORDER BY identity = 'same'`,
      ),
    ).toEqual([
      { feed: 'other', state: 'open', full: true },
      { feed: 'other', state: 'open', full: false },
    ]);
  });

  it('changes nothing when it is tried, refused, or has no heir', async () => {
    const before = await everything();
    const dry = await run('former --to other --dry-run');
    expect(dry).toMatchObject({ exitCode: 0, err: '' });
    expect(dry.out).toContain('2 runs, 1 pending result, 1 open entry in quarantine: handed to the feed other\n');
    const asked = await run('former', { answer: 'no' });
    expect(asked).toMatchObject({ exitCode: 1, out: '' });
    expect(asked.err).toMatch(/^Feed former of https:\/\/service\.test\/v1\n {2}read up to: .*\n {2}2 runs, /);
    expect(await run('former')).toMatchObject({ exitCode: 64, err: expect.stringContaining('--yes') });
    expect(await run('former --to former --yes')).toMatchObject({ exitCode: 64 });
    expect(await run('former --to none --yes')).toMatchObject({ exitCode: 1, err: expect.stringContaining('"none"') });
    expect(await run('none --yes')).toMatchObject({ exitCode: 1, err: expect.stringContaining('existing feeds') });
    expect(await everything()).toEqual(before);
  });

  it('is refused with the remedy when a process leads the feed, also one that begins while it asks', async () => {
    const refused = { exitCode: 75, out: '', err: expect.stringContaining('take it out of the settings') };
    expect(await run('other --yes')).toMatchObject(refused);
    const taken = await run('former', {
      answer: async () => {
        await setup.takeFeed({ name: 'former' });
        return 'y';
      },
    });
    expect(taken).toMatchObject({ exitCode: 75, out: '', err: expect.stringContaining('in the meantime; try again') });
    expect(await feedsOf('feeds', 'name')).toEqual(['former', 'other']);
  });

  it('hands many runs over in several transactions, between which other feeds can commit', async () => {
    await setup.rows(sql`INSERT INTO ${tables.runs} (scan_id, revision, status, environment, file_name, partner_test_mode,
        result_state, feed, stored_by, repaired, first_synced_at, synced_at, change_seq)
      SELECT 'many ' || n, 1, 'failed', 'prod', '', false, 'complete', 'former', 'feed', false, now(), now(), 0
      FROM generate_series(1, 5000) AS n`);
    await run('former --to other --yes');
    expect(
      await setup.rows(sql`SELECT count(*)::int AS runs, count(DISTINCT xmin::text)::int AS transactions
        FROM ${tables.runs} WHERE feed = 'other' AND scan_id LIKE 'many%'`),
    ).toEqual([{ runs: 5_000, transactions: 3 }]);
  });

  it('lets the feed start again at another address', async () => {
    const moved = testFeed({ name: 'former', baseUrl: 'https://moved.test/v1' });
    await expect(setup.store.acquireLease(moved, 'daemon')).rejects.toThrow('run `scanfeed forget former`');
    await run('former --yes');
    expect(await setup.store.acquireLease(moved, 'daemon')).toMatchObject({ holder: 'daemon' });
    expect(await setup.store.readPosition('former')).toMatchObject({ cursor: null });
    expect((await setup.store.readStatus('former')).pendingResults).toBe(1);
  });

  const program = findPgBouncer();
  it.runIf(program !== null)('loses no run when the other feed commits meanwhile, through PgBouncer', async () => {
    const bouncer = await startPgBouncer(program ?? '', given.url, 2);
    try {
      const feed = await setup.takeFeed({ name: 'other' });
      const commits = Array.from({ length: 30 }, (_, n) => n).reduce(
        (done, n) => done.then(async () => void (await feed.counts([entryJson({ scanId: `meanwhile ${n}` })]))),
        Promise.resolve(),
      );
      const env = { DATABASE_URL: bouncer.url };
      expect(await run('former --to other --yes', { env })).toMatchObject({ exitCode: 0 });
      await commits;
      expect(await feedsOf('runs')).toEqual(Array.from({ length: 33 }, () => 'other'));
    } finally {
      await bouncer.stop();
    }
  });
});
