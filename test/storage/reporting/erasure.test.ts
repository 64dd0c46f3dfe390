import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import * as erase from '../../../src/cli/commands/erase.js';
import { createStore } from '../../../src/storage/store.js';
import { checkRun } from '../../../src/sync/page/check-entries.js';
import { storeResult } from '../../../src/sync/results/store-result.js';
import { runCommand } from '../../support/command.js';
import { concurrently } from '../../support/concurrent-commits.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { rawRun } from '../../support/pages.js';
import { commitPending } from '../../support/pending.js';
import { useDatabase } from '../../support/postgres/index.js';
import { emptyReports } from '../../support/reports.js';
import {
  MIGRATED,
  openTestDatabase,
  TEST_SCHEMA,
  type TestFeed,
  tables,
  takeFeed,
  testFeed,
  useStore,
} from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const DAY = 86_400_000;
let feed: TestFeed;

beforeEach(async () => {
  await emptyReports(setup);
  feed = await setup.takeFeed();
});

const daysAgo = (days: number) => new Date(Date.now() - days * DAY).toISOString();
const entry = (scanId: string, over: Fields = {}) => entryJson({ scanId, ...over });
const stored = async () =>
  (
    await setup.rows(sql<{ text: string }>`SELECT scan_id || '#' || revision AS text FROM ${tables.runs} ORDER BY 1`)
  ).map(({ text }) => text);
const deleted = () =>
  setup.rows(sql<{ scan_id: string; reason: string }>`
  SELECT scan_id, reason FROM scanfeed_reporting.deleted_runs ORDER BY change_seq`);
const run = (args: string, setting = {}) =>
  runCommand(erase, ['erase', ...args.split(' ')], { env: { DATABASE_URL: given.url }, ...setting });
/** Returns the contents of all tables as text. */
const everything = async () =>
  JSON.stringify(
    await setup.rows(sql`
    SELECT to_jsonb(r)::text AS row FROM ${tables.runs} AS r UNION ALL SELECT to_jsonb(h)::text FROM ${tables.runHistory} AS h
    UNION ALL SELECT to_jsonb(q)::text || convert_from(payload, 'LATIN1') FROM ${tables.quarantine} AS q`),
  );

describe('erase', () => {
  it('deletes history and quarantined entries when it deletes a run, as --dry-run shows', async () => {
    await feed.commit([entry('a', { partnerName: 'canary-1' }), entry('b')]);
    await feed.commit([entry('a', { revision: 2, fileName: 'canary-2' })]);
    await feed.commit([entry('a', { revision: 3, status: 'odd', error: 'canary-3' })]);
    await feed.commit([entryJson({ scanId: ['a'], fileName: 'canary-4' })]);
    const before = await everything();
    const dry = await run('--scan-id a --scan-id c --dry-run');
    expect(dry.err).toBe('Nothing was erased: this is what would be.\n');
    expect([await everything(), await deleted()]).toEqual([before, []]);
    const { out, exitCode } = await run('--scan-id a --scan-id c --yes');
    expect(dry.out).toBe(out);
    expect({ out, exitCode }).toEqual({
      out: 'a: the run, 1 earlier revision, 2 quarantined entries\nc: not stored\n',
      exitCode: 0,
    });
    expect(await everything()).not.toContain('canary');
    expect(await stored()).toEqual(['b#1']);
    expect(await deleted()).toEqual([
      { scan_id: 'a', reason: 'erased' },
      { scan_id: 'c', reason: 'erased' },
    ]);
  });

  it('refuses an empty id, which the content of entries without an id would contain', async () => {
    await feed.commit([entryJson({ scanId: ['a'], fileName: '', error: 'canary' })]);
    const before = await everything();
    for (const args of ['--scan-id  --yes', '--scan-id a --scan-id  --dry-run'])
      expect(await run(args)).toEqual({ exitCode: 64, out: '', err: 'scanfeed: --scan-id must not be empty\n' });
    expect([await everything(), await deleted()]).toEqual([before, []]);
  });

  it('leaves no value in the statistics when it deletes a run', async () => {
    await feed.commit([1, 2, 3].flatMap((n) => [entry(`a${n}`, { partnerName: 'canary' }), entry(`b${n}`)]));
    await setup.rows(sql`ANALYZE ${tables.runs}`);
    const statistics = async () =>
      JSON.stringify(
        await setup.rows(sql`SELECT most_common_vals::text, histogram_bounds::text FROM pg_stats
        WHERE schemaname = ${TEST_SCHEMA}`),
      );
    expect(await statistics()).toContain('canary');
    await setup.operatorStore.deletedRuns.erase(['a1', 'a2', 'a3']);
    expect(await statistics()).not.toContain('canary');
  });

  it('prevents later revisions from being stored when a run was erased', async () => {
    await feed.commit([entry('a')]);
    await setup.operatorStore.deletedRuns.erase(['a']);
    feed = await setup.takeFeed();
    const counts = await feed.counts([
      entry('a'),
      entry('a', { revision: 9, fileName: 'canary' }),
      entry('a', { revision: 10, status: 'odd', fileName: 'canary' }),
      entry('a', { revision: 0, fileName: 'canary' }),
      entry('b'),
    ]);
    expect(counts).toMatchObject({ inserted: 1, stale: 2, quarantined: 0, stored: ['b'] });
    await feed.commit([entryJson({ scanId: 'a', fileName: '\u0000canary' })]);
    expect(await stored()).toEqual(['b#1']);
    expect(await everything()).not.toContain('canary');
  });

  it('prevents results from being loaded when a run was erased', async () => {
    await setup.operatorStore.deletedRuns.erase(['a']);
    expect(await setup.store.findStored(['a', 'b'])).toEqual([
      { scanId: 'a', revision: 2 ** 31 - 1, complete: true, markdownKnown: true },
    ]);
  });

  it('treats a bad entry as known when its run was erased', async () => {
    await setup.operatorStore.deletedRuns.erase(['a']);
    const bad = { revision: null, reason: 'revision', detail: '', state: 'open' } as const;
    const entries = ['a', 'b'].map((scanId) => ({ ...bad, scanId, payload: Buffer.from(scanId) }));
    expect(await setup.store.notYetQuarantined('default', entries)).toEqual([entries[1]]);
  });

  it('deletes the content permanently when an entry has no usable scan id', async () => {
    await feed.commit([entryJson({ scanId: ['a'], fileName: 'canary' })]);
    await setup.operatorStore.deletedRuns.erase(['a']);
    feed = await setup.takeFeed();
    await feed.commit([entryJson({ scanId: ['a'], fileName: 'canary' })]);
    expect(await everything()).not.toContain('canary');
    expect(await setup.rows(sql`SELECT state, times_seen FROM ${tables.quarantine}`)).toEqual([
      { state: 'discarded', times_seen: 2 },
    ]);
  });

  it('fences a page when it was judged before the erasure', async () => {
    const other = openTestDatabase(given.url);
    let committing: Promise<unknown> = Promise.resolve();
    await other.sql.transaction().execute(async (before) => {
      // The erasure waits behind this writer, and the commit behind the erasure.
      await sql`SELECT FROM ${tables.feeds} FOR UPDATE`.execute(before);
      const erasing = setup.operatorStore.deletedRuns.erase(['a']);
      await untilWaiting(other.sql, 1);
      committing = feed.commit([entry('a'), entry('a', { revision: 2, status: 'odd' })]);
      await untilWaiting(other.sql, 2);
      committing = Promise.all([erasing, committing]);
    });
    expect(((await committing) as unknown[])[1]).toEqual({ kind: 'fenced' });
    await other.close();
    expect(await everything()).toBe('[]');
  });

  it('fences a page when the database has lost the take that it was read under', async () => {
    await setup.rows(sql`UPDATE ${tables.feeds} SET lease_epoch = lease_epoch - 1`);
    await setup.operatorStore.deletedRuns.erase(['a']);
    expect(await feed.commit([entry('b')])).toEqual({ kind: 'fenced' });
  });

  it('draws its number in the order of commits when others commit too', async () => {
    await feed.commit([entry('a'), entry('b')]);
    await setup.operatorStore.deletedRuns.erase(['a']);
    feed = await setup.takeFeed();
    await feed.commit([entry('c')]);
    const rows = await setup.rows(sql`
      SELECT scan_id FROM (SELECT scan_id, change_seq FROM scanfeed_reporting.runs
        UNION ALL SELECT scan_id, change_seq FROM scanfeed_reporting.deleted_runs) AS change ORDER BY change_seq`);
    expect(rows.map((row) => (row as { scan_id: string }).scan_id)).toEqual(['b', 'a', 'c']);
  });

  it('asks for confirmation, and does nothing when nobody can answer', async () => {
    await feed.commit([entry('a')]);
    expect(await run('--scan-id a', { answer: 'n' })).toMatchObject({ exitCode: 1 });
    expect(await run('--scan-id a')).toMatchObject({ exitCode: 64 });
    expect(await stored()).toEqual(['a#1']);
    const { out } = await run('--scan-id a --json', { answer: 'y' });
    expect(JSON.parse(out)).toEqual([{ scanId: 'a', stored: true, revisions: 0, quarantined: 0 }]);
  });
});

describe('the retention', () => {
  const storeKeeping = (keptDays: number) =>
    createStore(setup.database, {
      schema: TEST_SCHEMA,
      pendingRetryMs: 30_000,
      keptDays,
      monotonic: () => performance.now(),
    });
  const keeping = async (keptDays: number) => takeFeed(storeKeeping(keptDays), testFeed());

  it('deletes runs with their history when their delivery, or else their storing, is too long ago', async () => {
    await feed.commit([
      entry('old', { deliveredAt: daysAgo(11), completedAt: daysAgo(11) }),
      entry('corrected', { deliveredAt: daysAgo(11), completedAt: daysAgo(11) }),
      entry('new', { deliveredAt: daysAgo(9), completedAt: daysAgo(9) }),
      entry('undated', { deliveredAt: null, completedAt: null }),
      entry('stored long ago', { deliveredAt: null, completedAt: null }),
    ]);
    await feed.commit([entry('old', { revision: 2, deliveredAt: daysAgo(10.5), completedAt: daysAgo(11) })]);
    await feed.commit([entry('corrected', { revision: 2, deliveredAt: daysAgo(1), completedAt: daysAgo(11) })]);
    await setup.rows(
      sql`UPDATE ${tables.runs} SET synced_at = now() - interval '11 days' WHERE scan_id = 'stored long ago'`,
    );
    expect(await setup.operatorStore.deletedRuns.purgeRuns(10, 100)).toBe(2);
    expect(await setup.operatorStore.deletedRuns.purgeRuns(10, 100)).toBe(0);
    expect(await stored()).toEqual(['corrected#2', 'new#1', 'undated#1']);
    expect(await setup.rows(sql`SELECT scan_id FROM ${tables.runHistory}`)).toEqual([{ scan_id: 'corrected' }]);
    expect((await deleted()).map(({ reason }) => reason)).toEqual(['expired', 'expired']);
  });

  it('deletes runs when their times are in the future', async () => {
    const never = '2070-12-31T00:00:00Z';
    await feed.commit([
      entry('completed', { deliveredAt: daysAgo(11), completedAt: never }),
      entry('delivered', { deliveredAt: never, completedAt: daysAgo(11) }),
      entry('both', { deliveredAt: never, completedAt: never }),
      entry('new', { deliveredAt: daysAgo(9), completedAt: never }),
    ]);
    await setup.rows(
      sql`UPDATE ${tables.runs} SET synced_at = now() - interval '11 days' WHERE scan_id IN ('delivered', 'both')`,
    );
    expect(await setup.operatorStore.deletedRuns.purgeRuns(10, 100)).toBe(3);
    expect(await stored()).toEqual(['new#1']);
  });

  it('stores a deleted run only when a later revision was delivered since', async () => {
    const old = { deliveredAt: daysAgo(11), completedAt: daysAgo(11) };
    await feed.commit([entry('a', old), entry('undated', { deliveredAt: null, completedAt: null })]);
    await setup.rows(sql`UPDATE ${tables.runs} SET synced_at = now() - interval '11 days'`);
    expect(await setup.operatorStore.deletedRuns.purgeRuns(10, 100)).toBe(2);
    const keptFeed = await keeping(10);
    await keptFeed.commit([entry('a', old), entry('undated', { deliveredAt: null, completedAt: null })]);
    expect(await stored()).toEqual([]);
    await keptFeed.commit([entry('a', { revision: 2, deliveredAt: daysAgo(1) })]);
    expect(await stored()).toEqual(['a#2']);
    expect((await deleted()).map(({ scan_id }) => scan_id)).toEqual(['undated']);
  });

  it('does not store an entry when it has expired, unless it has no delivery time', async () => {
    const keptFeed = await keeping(10);
    const counts = await keptFeed.counts([
      entry('old', { deliveredAt: daysAgo(10.1) }),
      entry('new', { deliveredAt: daysAgo(9.9) }),
      entry('undated', { deliveredAt: null }),
    ]);
    expect(counts).toMatchObject({ inserted: 2, stale: 1 });
    expect(await stored()).toEqual(['new#1', 'undated#1']);
  });

  it.each(['0001-01-01T00:00:00Z', '1970-01-01T00:00:00Z', '9999-12-31T23:59:59Z'])(
    'counts from the time of storing when the service sends %s for no time',
    async (none) => {
      const keptFeed = await keeping(10);
      const undated = entry('undated', { submittedAt: none, completedAt: none, deliveredAt: none });
      expect(await keptFeed.counts([undated])).toMatchObject({ inserted: 1, stale: 0 });
      expect(await setup.rows(sql`SELECT completed_at, delivered_at, extra FROM ${tables.runs}`)).toEqual([
        {
          completed_at: null,
          delivered_at: null,
          extra: { submittedAt: none, completedAt: none, deliveredAt: none },
        },
      ]);
      expect(await setup.operatorStore.deletedRuns.purgeRuns(10, 100)).toBe(0);
      await setup.rows(sql`UPDATE ${tables.runs} SET synced_at = now() - interval '11 days'`);
      expect(await setup.operatorStore.deletedRuns.purgeRuns(10, 100)).toBe(1);
      expect(await keptFeed.counts([undated])).toMatchObject({ inserted: 0, stale: 1 });
    },
  );

  it.each([1, 2])(
    'leaves an expired run pending when its revision %d is loaded before the deletion',
    async (revision) => {
      const old = { deliveredAt: daysAgo(11), completedAt: daysAgo(11) };
      await commitPending(feed, { scanId: 'a', ...old });
      const result = checkRun(rawRun(entry('a', { revision, ...old })));
      if (result === null) throw new Error('unusable');
      const stillPending = { kind: 'still_pending', reason: 'not_loaded' };
      expect(await storeResult(storeKeeping(10), feed.lease, result)).toMatchObject(stillPending);
      expect(await storeResult(setup.store, feed.lease, result)).toMatchObject({ kind: 'stored' });
      expect(await storeResult(setup.store, feed.lease, result)).toMatchObject({
        kind: 'stored',
        counts: { unchanged: 1 },
      });
    },
  );

  it('keeps a correction when it arrives during the deletion', async () => {
    await feed.commit([entry('a', { deliveredAt: daysAgo(11), completedAt: daysAgo(11) })]);
    const other = openTestDatabase(given.url);
    let purging: Promise<unknown> = Promise.resolve();
    await other.sql.transaction().execute(async (writer) => {
      await sql`SELECT FROM ${tables.changeClock} FOR UPDATE`.execute(writer);
      purging = setup.operatorStore.deletedRuns.purgeRuns(10, 100);
      await untilWaiting(other.sql, 1);
      await sql`UPDATE ${tables.runs} SET revision = 2, delivered_at = now()`.execute(writer);
    });
    await purging;
    await other.close();
    expect(await stored()).toEqual(['a#2']);
    expect(await deleted()).toEqual([]);
  });

  it('lists a run as deleted or as stored, never as both, when a correction is judged before the deletion', async () => {
    await feed.commit([entry('a', { deliveredAt: daysAgo(11), completedAt: daysAgo(11) })]);
    const correction = entry('a', { revision: 2, deliveredAt: daysAgo(1) });
    const purge = () => setup.operatorStore.deletedRuns.purgeRuns(10, 100);
    await concurrently(setup.database.sql, purge, () => feed.commit([correction]));
    expect(await stored()).toEqual(['a#2']);
    expect(await deleted()).toEqual([]);
  });

  it('deletes superseded revisions and quarantined content when they have expired', async () => {
    await feed.commit([entry('a')]);
    await feed.commit([entry('a', { revision: 2 })]);
    await feed.commit([entry('b', { status: 'odd', fileName: 'canary' }), entry('c', { fileName: '\u0000canary' })]);
    await setup.rows(sql`UPDATE ${tables.runHistory} SET superseded_at = now() - interval '11 days'`);
    await setup.rows(sql`UPDATE ${tables.quarantine} SET first_seen_at = now() - interval '11 days'`);
    expect(await setup.operatorStore.deletedRuns.purgeHistory(12, 100)).toBe(0);
    expect(await setup.operatorStore.deletedRuns.purgeHistory(10, 100)).toBe(1);
    expect(await setup.operatorStore.deletedRuns.purgeQuarantine(12, 100)).toBe(0);
    expect(await setup.operatorStore.deletedRuns.purgeQuarantine(10, 100)).toBe(2);
    expect(await setup.operatorStore.deletedRuns.purgeQuarantine(10, 100)).toBe(0);
    await feed.commit([entry('b', { status: 'odd', fileName: 'canary' })]);
    expect(
      await setup.rows(sql`SELECT scan_id, state, payload_bytes FROM scanfeed_reporting.quarantined ORDER BY 1`),
    ).toEqual([
      { scan_id: 'b', state: 'discarded', payload_bytes: 0 },
      { scan_id: 'c', state: 'repaired', payload_bytes: 0 },
    ]);
  });
});
