import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import * as rewind from '../../../src/cli/commands/rewind.js';
import { type CommandSetting, runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, runRow, type TestFeed, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const DELIVERED = '2026-03-01T12:00:00.000Z';
let feed: TestFeed;

beforeEach(async () => {
  await setup.rows(sql`TRUNCATE ${tables.feeds}, ${tables.runs}, ${tables.cursorHistory} RESTART IDENTITY`);
  feed = await setup.takeFeed();
  await feed.commit([entryJson({ scanId: 'a', revision: 2, deliveredAt: DELIVERED })], {
    to: 'here',
    freshness: { end: 'yes', polledAt: performance.now(), completeUpTo: null, lastDeliveredAt: new Date(DELIVERED) },
  });
});

const run = (args: string, setting: Partial<CommandSetting> = {}) =>
  runCommand(rewind, ['rewind', ...args.split(' ')], { env: { DATABASE_URL: given.url }, ...setting });
const feedRow = async () =>
  (
    await setup.rows(
      sql<{
        cursor: string | null;
        resume_since: Date | null;
        data_complete_as_of: Date;
      }>`SELECT * FROM ${tables.feeds}`,
    )
  )[0];
const history = () =>
  setup.rows(sql<{ id: string; cursor: string; reason: string }>`
    SELECT id::text, cursor, reason FROM ${tables.cursorHistory} ORDER BY id`);

describe('rewind', () => {
  it('moves to an earlier position by its id, and records the previous one', async () => {
    await feed.commit([entryJson({ scanId: 'b' })], { to: 'further' });
    expect(await run('--to-cursor 1 --yes')).toMatchObject({
      exitCode: 0,
      out: `The feed default continues from position 1 (read up to ${DELIVERED}).\n`,
    });
    expect(await feedRow()).toMatchObject({ cursor: 'here', resume_since: null });
    expect(await history()).toEqual([
      { id: '1', cursor: 'here', reason: 'checkpoint' },
      { id: '2', cursor: 'further', reason: 'rewind' },
    ]);
  });

  it('shows where it would go, and stays, with --dry-run', async () => {
    const before = [await feedRow(), await history()];
    const { exitCode, out } = await run('--beginning --dry-run');
    expect(exitCode).toBe(0);
    expect(out).toContain(`  from: read up to ${DELIVERED}\n  to:   the beginning of the history\n`);
    expect(await run('--to-cursor 9 --dry-run')).toMatchObject({ exitCode: 1 });
    expect([await feedRow(), await history()]).toEqual(before);
  });

  it('moves to a time, and to the start of the feed', async () => {
    await run('--since 2026-02-01T00:00:00+01:00 --yes');
    expect(await setup.store.readPosition('default')).toEqual({
      ...{ cursor: null, origin: expect.any(String) },
      since: new Date('2026-01-31T23:00:00Z'),
    });
    await run('--beginning --yes');
    expect(await setup.store.readPosition('default')).toEqual({
      ...{ cursor: null, origin: expect.any(String) },
      since: null,
    });
  });

  it('moves to the exact start time when the feed did not begin at the beginning', async () => {
    const start = new Date('2026-01-15T00:00:00Z');
    await setup.takeFeed({ name: 'late', start });
    expect((await run('--beginning --yes --feed late')).out).toContain('its start, 2026-01-15T00:00:00.000Z');
    expect(await setup.store.readPosition('late')).toEqual({
      ...{ cursor: null, origin: expect.any(String) },
      since: start,
    });
  });

  it('fences commits in transit when a daemon is running', async () => {
    await run('--beginning --yes');
    expect(await feed.commit([entryJson({ scanId: 'on its way' })], { from: null })).toEqual({ kind: 'fenced' });
    expect(await setup.isHeld(feed.lease)).toBe(false);
    const again = await setup.takeFeed();
    expect(await again.commit([entryJson({ scanId: 'read again' })])).toMatchObject({ kind: 'committed' });
  });

  it('keeps stored rows and their freshness', async () => {
    const before = await feedRow();
    await run('--beginning --yes');
    expect((await feedRow())?.data_complete_as_of).toEqual(before?.data_complete_as_of);
    const again = await setup.takeFeed();
    await again.commit([entryJson({ scanId: 'a', revision: 1, deliveredAt: DELIVERED })], {
      freshness: {
        end: 'no',
        polledAt: performance.now(),
        completeUpTo: performance.now() - 9e9,
        lastDeliveredAt: null,
      },
    });
    expect((await feedRow())?.data_complete_as_of).toEqual(before?.data_complete_as_of);
    expect((await setup.rows(runRow('a')))[0]).toMatchObject({ revision: 2 });
  });

  it('records the latest position when a page was committed in the meantime', async () => {
    const running = await setup.database.sql.transaction().execute(async (tx) => {
      await sql`UPDATE ${tables.feeds} SET cursor = 'a moment later'`.execute(tx);
      const rewinding = run('--beginning --yes');
      const waiting = sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
      while ((await setup.rows(waiting)).length === 0) await new Promise(setImmediate);
      return { rewinding };
    });
    expect(await running.rewinding).toMatchObject({ exitCode: 0 });
    expect((await history()).at(-1)).toMatchObject({ cursor: 'a moment later', reason: 'rewind' });
    expect(await feedRow()).toMatchObject({ cursor: null });
  });

  it('shows both positions, and changes nothing when the answer is not yes', async () => {
    const before = await feedRow();
    const { exitCode, err } = await run('--since 2026-02-01', { answer: 'n' });
    expect(exitCode).toBe(1);
    expect(err).toContain(`from: read up to ${DELIVERED}\n  to:   2026-02-01T00:00:00.000Z\n`);
    expect(err).toContain('Rewind the feed? [y/N] n\nscanfeed: nothing was changed\n');
    expect(await run('--beginning')).toMatchObject({ exitCode: 64 });
    expect(await feedRow()).toEqual(before);
    expect(await run('--beginning', { answer: 'yes' })).toMatchObject({ exitCode: 0 });
  });

  it('refuses to skip ahead, which would make the freshness wrong', async () => {
    const before = await feedRow();
    expect(await run('--since 2026-03-01T12:00:01Z --yes')).toMatchObject({
      exitCode: 1,
      err: `scanfeed: the feed default cannot skip ahead to 2026-03-01T12:00:01.000Z: it was read up to ${DELIVERED}\n`,
    });
    await setup.takeFeed({ name: 'new' });
    expect(await run('--since 2026-01-01 --yes --feed new')).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('nothing has been delivered yet'),
    });
    expect(await feedRow()).toEqual(before);
  });

  it.each(['--to-cursor 99', '--to-cursor 1 --feed other'])(
    'reports when the position does not exist: %s',
    async (args) => {
      await setup.takeFeed({ name: 'other' });
      expect(await run(`${args} --yes`)).toMatchObject({
        exitCode: 1,
        err: expect.stringContaining('has no earlier position'),
      });
    },
  );

  it.each([
    '--yes',
    '--beginning --since 1d',
    '--since yesterday',
    '--since 2026-02-30',
    '--since 2026-02-01T00:00:00',
    '--to-cursor x',
  ])('refuses %s as wrong usage', async (args) => {
    expect(await run(args)).toMatchObject({ exitCode: 64 });
  });
});

describe('rewind --list', () => {
  it('lists earlier positions, newest first, and shows no cursor', async () => {
    await run('--beginning --yes');
    await run('--beginning --yes');
    const { out } = await run('--list');
    expect(out).toMatch(
      /^ID {2}NOTED .*DELIVERED UP TO\n 3 {2}\S+ {2}rewind {6}no cursor\n 2 {2}\S+ {2}rewind {6}2026-03-01T12:00:00.000Z\n 1 {2}\S+ {2}checkpoint {2}2026-03-01T12:00:00.000Z\n$/,
    );
    expect(out).not.toContain('here');
    expect(JSON.parse((await run('--list --json')).out)).toMatchObject([
      { id: '3', reason: 'rewind', hasCursor: false },
      { id: '2', reason: 'rewind', hasCursor: true },
      { id: '1', reason: 'checkpoint', hasCursor: true },
    ]);
    expect(await run('--to-cursor 3 --yes')).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('had no cursor'),
    });
  });
});
