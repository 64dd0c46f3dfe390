import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import * as quarantine from '../../../src/cli/commands/quarantine.js';
import { type CommandSetting, runCommand } from '../../support/command.js';
import { commitAsEngine } from '../../support/commit-as-engine.js';
import { entryJson, pageJson, raw } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, runRow, type TestFeed, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
let feed: TestFeed;

beforeEach(async () => {
  await setup.rows(sql`TRUNCATE ${tables.feeds}, ${tables.runs}, ${tables.quarantine} RESTART IDENTITY`);
  feed = await setup.takeFeed();
});

const run = (args: string, setting: Partial<CommandSetting> = {}) =>
  runCommand(quarantine, ['quarantine', ...args.split(' ')], { env: { DATABASE_URL: given.url }, ...setting });
const states = async () =>
  Object.fromEntries(
    (
      await setup.rows(sql<{ id: string; state: string }>`SELECT id::text, state FROM ${tables.quarantine} ORDER BY id`)
    ).map(({ id, state }) => [id, state]),
  );
/** Quarantines valid entries, as an earlier release with stricter checks would. */
const quarantineSound = async (
  entry: string,
  { scanId, revision }: { scanId: string | null; revision: number | null },
) => {
  const [row] = await setup.rows(sql<{ id: string }>`
    INSERT INTO ${tables.quarantine} (feed, identity, scan_id, revision, reason, detail, payload, state)
    VALUES ('default', ${`${scanId}#${revision}#${entry.length}`}, ${scanId}, ${revision}, 'refused', 'a value was refused', ${Buffer.from(entry)}, 'open')
    RETURNING id::text`);
  return row?.id as string;
};

/** Resolves when a statement of this database waits for a lock. */
const untilBlocked = async () => {
  const waiting = sql`
    SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
  while ((await setup.rows(waiting)).length === 0) await new Promise(setImmediate);
};

describe('quarantine list', () => {
  it('shows open entries, newest first, and no content', async () => {
    await feed.commit([
      entryJson({ scanId: 'bad-1', status: 'unheard of' }),
      entryJson({ scanId: 'bad-2', revision: 0 }),
    ]);
    const { out, exitCode } = await run('list');
    expect(exitCode).toBe(0);
    expect(out).toMatch(
      /^ID {2}STATE {2}REASON .*SCAN\n 2 {2}open {3}revision .* - {2}bad-2\n 1 {2}open {3}status .* 1 {2}bad-1\n$/,
    );
    expect(out).not.toContain('Muster');
  });

  it('shows long scan ids in full, and replaces control characters', async () => {
    await feed.commit([entryJson({ scanId: `\u001b[31m${'x'.repeat(200)}`, status: 'unheard of' })]);
    const { out } = await run('list', { columns: 80 });
    expect(out).toContain('x'.repeat(200));
    expect(out).toContain('\ufffd[31mxx');
    expect(out).not.toContain('\u001b');
    expect((await run('list')).out).toContain('x'.repeat(200));
  });

  it('filters by state, and reports when there are more entries', async () => {
    await feed.commit([entryJson({ scanId: 'a', status: '?' }), entryJson({ scanId: 'b', status: '?' })]);
    await feed.commit([entryJson({ scanId: 'c', fileName: raw('"\\u0000"') })]);
    expect((await run('list --state repaired')).out).toMatch(/\bc\n$/);
    const all = await run('list --state all --limit 1');
    expect(all.err).toBe('1 of 3; see --limit\n');
    expect(JSON.parse((await run('list --state all --json')).out)).toMatchObject([
      { id: '3', state: 'repaired', scanId: 'c', revision: 1, reason: 'text' },
      { id: '2', state: 'open', reason: 'status' },
      { id: '1', state: 'open', reason: 'status' },
    ]);
    expect((await run('list --state discarded')).out).toBe('No discarded entries of the feed default.\n');
  });

  it('names the existing feeds when the given one does not exist', async () => {
    expect(await run('list --feed archive')).toEqual({
      exitCode: 1,
      out: '',
      err: 'scanfeed: there is no feed "archive" in the schema scanfeed; existing feeds: default\n',
    });
  });
});

describe('quarantine show', () => {
  const bad = entryJson({ scanId: 'bad', status: 'unheard of', data: { betrag: raw('1.10') } });

  it('shows the reason without the content', async () => {
    await feed.commit([bad]);
    const { out } = await run('show 1');
    expect(out).toContain('Reason:   status: status is neither completed nor failed\n');
    expect(out).toContain(`Size:     ${bad.length} bytes`);
    expect(out).not.toContain('1.10');
    expect((await run('show 1 --json')).out).not.toContain('1.10');
  });

  it('writes only the bytes as received with --payload', async () => {
    await feed.commit([bad]);
    expect(await run('show 1 --payload')).toEqual({ exitCode: 0, out: bad, err: '' });
  });

  it('names the entry when it does not exist', async () => {
    expect(await run('show 77')).toMatchObject({
      exitCode: 1,
      err: 'scanfeed: there is no entry 77 in the quarantine of the feed default\n',
    });
    expect(await run('show seven')).toMatchObject({ exitCode: 64 });
  });

  it('does not show an entry when it belongs to another feed', async () => {
    await feed.commit([bad]);
    await setup.takeFeed({ name: 'other' });
    expect(await run('show 1 --feed other')).toMatchObject({ exitCode: 1 });
  });
});

describe('quarantine replay', () => {
  it('stores entries that pass the checks with every digit, and reports why others are still invalid', async () => {
    const id = await quarantineSound(entryJson({ scanId: 'sound' }), { scanId: 'sound', revision: 1 });
    await feed.commit([entryJson({ scanId: 'bad', status: '?' })]);
    const { out, err, exitCode } = await run('replay --all');
    expect(out).toBe(
      `${id}: scan sound, revision 1: stored\n2: scan bad, revision 1: still invalid (status: status is neither completed nor failed)\n`,
    );
    expect(err).toBe('scanfeed: 1 of 2 entries still invalid, kept in quarantine\n');
    expect(exitCode).toBe(1);
    expect(await states()).toEqual({ 1: 'replayed', 2: 'open' });
    const [row] = await setup.rows(runRow('sound'));
    expect(row).toMatchObject({ data: '{"betrag": 1.10, "nummer": 12345678901234567890}', result_state: 'complete' });
  });

  it('stores an entry when earlier checks rejected its id', async () => {
    const id = await quarantineSound(entryJson({ scanId: 'now usable' }), { scanId: null, revision: null });
    expect(await run(`replay ${id}`)).toMatchObject({ exitCode: 0 });
    expect(await states()).toEqual({ 1: 'replayed' });
    expect(await setup.rows(runRow('now usable'))).toHaveLength(1);
  });

  it('keeps the cursor and the lease when a daemon is running', async () => {
    await feed.commit([entryJson({ scanId: 'first' })], { to: 'here' });
    await quarantineSound(entryJson({ scanId: 'sound' }), { scanId: 'sound', revision: 1 });
    await run('replay --all');
    expect(await feed.commit([entryJson({ scanId: 'next' })])).toMatchObject({ kind: 'committed' });
  });

  it('keeps the stored revision when that of the entry is older', async () => {
    await feed.commit([entryJson({ scanId: 'a', revision: 2, fileName: 'newer.pdf' })]);
    await quarantineSound(entryJson({ scanId: 'a', revision: 1 }), { scanId: 'a', revision: 1 });
    expect((await run('replay 1')).out).toBe(
      '1: scan a, revision 1: discarded: a newer revision is stored, or the run was erased or is past the retention\n',
    );
    expect(await states()).toEqual({ 1: 'discarded' });
    expect((await setup.rows(runRow('a')))[0]).toMatchObject({ revision: 2, file_name: 'newer.pdf' });
  });

  it('leaves an entry in quarantine when PostgreSQL still refuses it', async () => {
    const huge = entryJson({ scanId: 'huge', data: { n: raw('1e131072') } });
    await quarantineSound(huge, { scanId: 'huge', revision: 1 });
    const { out, exitCode } = await run('replay 1 --json');
    expect(JSON.parse(out)).toMatchObject([{ id: '1', outcome: 'still_bad', reason: 'refused' }]);
    expect(exitCode).toBe(1);
    expect(await states()).toEqual({ 1: 'open' });
  });

  it('repairs text, and keeps the original, when PostgreSQL cannot store it', async () => {
    const odd = entryJson({ scanId: 'odd', fileName: raw('"a\\u0000b.pdf"') });
    await quarantineSound(odd, { scanId: 'odd', revision: 1 });
    expect(await run('replay 1')).toMatchObject({ exitCode: 0 });
    expect((await setup.rows(runRow('odd')))[0]).toMatchObject({ file_name: 'a\ufffdb.pdf', repaired: true });
    expect((await run('show 1 --payload')).out).toBe(odd);
  });

  it('stores an entry as pending, for the leader to load, when it is truncated', async () => {
    const cut = entryJson({ scanId: 'cut', data: undefined, resultTruncated: true });
    await quarantineSound(cut, { scanId: 'cut', revision: 1 });
    await run('replay 1');
    expect((await setup.rows(runRow('cut')))[0]).toMatchObject({
      result_state: 'pending',
      pending_reason: 'not_loaded',
    });
  });

  it('replays a discarded entry by its id, and refuses one whose run is stored', async () => {
    await quarantineSound(entryJson({ scanId: 'a' }), { scanId: 'a', revision: 1 });
    await run('discard 1 --yes');
    expect(await run('replay 1')).toMatchObject({ exitCode: 0 });
    expect(await run('replay 1')).toMatchObject({
      exitCode: 1,
      err: 'scanfeed: entry 1 is replayed: its run is stored\n',
    });
  });

  it('stores nothing when one of the ids is wrong', async () => {
    await quarantineSound(entryJson({ scanId: 'a' }), { scanId: 'a', revision: 1 });
    expect(await run('replay 1 9')).toMatchObject({
      exitCode: 1,
      err: 'scanfeed: there is no entry 9 in the quarantine of the feed default\n',
    });
    expect(await states()).toEqual({ 1: 'open' });
  });

  it('requires either ids or --all', async () => {
    expect(await run('replay')).toMatchObject({ exitCode: 64, err: 'scanfeed: give ids or --all\n' });
    expect(await run('replay 1 --all')).toMatchObject({ exitCode: 64 });
    expect(await run('replay --all')).toMatchObject({ exitCode: 0, out: 'Nothing to replay.\n' });
  });

  it('retries when the leader changes', async () => {
    await quarantineSound(entryJson({ scanId: 'a' }), { scanId: 'a', revision: 1 });
    // The epoch is raised after it was read and before it is checked: the write waits for the row until then.
    const held = setup.database.sql.transaction().execute(async (tx) => {
      await sql`UPDATE ${tables.feeds} SET lease_epoch = lease_epoch + 1`.execute(tx);
      const replaying = run('replay 1');
      await untilBlocked();
      return { replaying };
    });
    const { exitCode } = await (await held).replaying;
    expect(exitCode).toBe(0);
    expect(await setup.rows(runRow('a'))).toHaveLength(1);
  });
});

describe('quarantine discard', () => {
  beforeEach(async () => {
    await feed.commit([entryJson({ scanId: 'a', status: '?' }), entryJson({ scanId: 'b', status: '?' })]);
  });

  it('asks for confirmation, and changes nothing when the answer is not yes', async () => {
    const { exitCode, err } = await run('discard --all', { answer: '' });
    expect(exitCode).toBe(1);
    expect(err).toMatch(/^2 entries of the feed default will be discarded.*\n.*\n.*\nDiscard them\? \[y\/N\] \n/);
    expect(await states()).toEqual({ 1: 'open', 2: 'open' });
    expect(await run('discard 1', { answer: 'y' })).toMatchObject({ exitCode: 0, out: 'Discarded: 1.\n' });
    expect(await states()).toEqual({ 1: 'discarded', 2: 'open' });
  });

  it('lists what would be discarded, and changes nothing, with --dry-run', async () => {
    const { exitCode, out, err } = await run('discard 2 --dry-run');
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: 'Nothing was discarded: these would be.\n' });
    expect(out).toMatch(/^ID.*SCAN\n 2 {2}open .* b\n$/);
    expect((await run('discard --all --dry-run --json')).out).toBe('{"discarded":["1","2"]}\n');
    expect(await run('discard 9 --dry-run')).toMatchObject({ exitCode: 1 });
    expect(await states()).toEqual({ 1: 'open', 2: 'open' });
  });

  it('requires --yes when there is no terminal', async () => {
    expect(await run('discard 1')).toMatchObject({ exitCode: 64, err: expect.stringContaining('add --yes') });
    expect(await run('discard --all --yes --json')).toMatchObject({ exitCode: 0, out: '{"discarded":["1","2"]}\n' });
  });

  it('keeps entries discarded when they are delivered again', async () => {
    await run('discard 1 --yes');
    await feed.commit([entryJson({ scanId: 'a', status: '?' })]);
    expect(await states()).toEqual({ 1: 'discarded', 2: 'open' });
  });

  it('keeps an entry when it was stored during the confirmation', async () => {
    const answer = async () => {
      await feed.commit([entryJson({ scanId: 'a' })]);
      return 'y';
    };
    expect(await run('discard --all', { answer })).toMatchObject({ exitCode: 0, out: 'Discarded: 1.\n' });
    expect(await states()).toEqual({ 1: 'replayed', 2: 'discarded' });
  });

  it('refuses entries when they are not open', async () => {
    await run('discard 1 --yes');
    expect(await run('discard 1 2 --yes')).toMatchObject({
      exitCode: 1,
      err: 'scanfeed: entry 1 is not open: it is discarded\n',
    });
    expect(await states()).toEqual({ 1: 'discarded', 2: 'open' });
  });
});

it('ends with 75 when the database is unavailable', async () => {
  const url = new URL(given.url);
  url.port = '1';
  expect(await run('list', { env: { DATABASE_URL: url.href } })).toMatchObject({
    exitCode: 75,
    err: expect.stringMatching(
      /^scanfeed: no connection to PostgreSQL at [^\n]+:1 \(ECONNREFUSED\): nothing listens there[^\n]+\n$/,
    ),
  });
});

describe('quarantine accept', () => {
  let pages = 0;
  /** Commits a page, of which every entry is unusable, as the leader does. Resolves to the number of quarantined entries. */
  const badPage = async () => {
    pages += 1;
    const entries = Array.from({ length: 200 }, (_, n) => entryJson({ scanId: `bad-${pages}-${n}`, status: 'odd' }));
    return (await commitAsEngine(setup, pageJson(entries), `page-${pages}`)).quarantined;
  };
  const acceptedUntil = async () => (await setup.store.readStatus('default')).acceptsBadUntil;

  it('lets a held feed continue, whichever process leads it, until it is stopped', async () => {
    await expect(badPage()).rejects.toMatchObject({ kind: 'mostly_bad' });
    const { exitCode, out, err } = await run('accept --for 8h', { answer: 'y' });
    expect({ exitCode, err }).toMatchObject({
      exitCode: 0,
      err: expect.stringMatching(/^Feed default for 8\.0 h:\nUnusable entries go/),
    });
    const until = (await acceptedUntil()) as Date;
    expect(out).toContain(`accepts unusable entries until ${until.toISOString().slice(0, 19)}Z.`);
    expect(Math.abs(until.getTime() - Date.now() - 8 * 3_600_000)).toBeLessThan(60_000);
    // Each page is committed under a new lease.
    expect([await badPage(), await badPage()]).toEqual([200, 200]);
    expect(await setup.operatorStore.readFeedReports()).toMatchObject([{ acceptsBadUntil: until }]);
    expect(await run('accept --stop --json')).toMatchObject({ out: '{"feed":"default","acceptsBadUntil":null}\n' });
    await expect(badPage()).rejects.toMatchObject({ kind: 'mostly_bad' });
  });

  it.each(['0', '25 hours'])('ends by the clock of the database, also when it is set back: %s', async (ahead) => {
    await run('accept --for 24h --yes');
    expect(await acceptedUntil()).not.toBeNull();
    await setup.rows(sql`UPDATE ${tables.feeds} SET accepts_bad_until = clock_timestamp() + ${ahead}::interval`);
    expect(await acceptedUntil()).toBeNull();
    await expect(badPage()).rejects.toMatchObject({ kind: 'mostly_bad' });
  });

  it.each([
    ['--for 25h', 64],
    ['--for 1h --stop', 64],
    ['--yes', 64],
  ])('refuses %s, and changes nothing', async (options, exitCode) => {
    expect(await run(`accept ${options}`)).toMatchObject({ exitCode });
    expect(await acceptedUntil()).toBeNull();
  });

  it('changes nothing when the answer is not yes', async () => {
    expect(await run('accept --for 1h', { answer: 'n' })).toMatchObject({ exitCode: 1 });
    expect(await acceptedUntil()).toBeNull();
  });
});
