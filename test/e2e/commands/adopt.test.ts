import { sql } from 'kysely';
import { beforeEach, expect, it } from 'vitest';
import * as adopt from '../../../src/cli/commands/adopt.js';
import { type CommandSetting, runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, type TestFeed, tables, testFeed, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);
const OLD = testFeed().baseUrl;
const NEW = 'https://moved.test/v1';
let feed: TestFeed;

beforeEach(async () => {
  await bench.rows(sql`TRUNCATE ${tables.feeds}, ${tables.cursorHistory} RESTART IDENTITY`);
  feed = await bench.takeFeed();
  await feed.commit([entryJson()], { to: 'here' });
});

const run = (args: readonly string[], setting: Partial<CommandSetting> = {}) =>
  runCommand(adopt, ['adopt', ...args], {
    env: { DATABASE_URL: given.url, SCANFEED_BASE_URL: NEW, SCANFEED_API_KEY: 'key-of-the-test' },
    ...setting,
  });
const feedRow = async () => (await bench.rows(sql`SELECT base_url, cursor FROM ${tables.feeds}`))[0];

it('assigns the cursor to the configured address, so that a daemon with it takes the lease', async () => {
  const moved = testFeed({ baseUrl: NEW });
  await bench.store.releaseLease(feed.lease);
  await expect(bench.store.acquireLease(moved, 'daemon', 30_000)).rejects.toMatchObject({ kind: 'another_service' });
  expect(await run(['--yes', '--json'])).toEqual({
    exitCode: 0,
    out: `{"feed":"default","from":"${OLD}","to":"${NEW}","changed":true}\n`,
    err: '',
  });
  expect(await feedRow()).toEqual({ base_url: NEW, cursor: 'here' });
  expect(await bench.store.acquireLease(moved, 'daemon', 30_000)).toMatchObject({ holder: 'daemon' });
  expect(await bench.rows(sql`SELECT cursor, reason FROM ${tables.cursorHistory} ORDER BY id DESC LIMIT 1`)).toEqual([
    { cursor: 'here', reason: 'adopt' },
  ]);
});

it('fences commits of a daemon with the old address', async () => {
  await run(['--yes']);
  expect(await feed.commit([entryJson({ scanId: 'from the old address' })])).toEqual({ kind: 'fenced' });
});

it('shows both addresses, and changes nothing when the answer is not yes', async () => {
  const { exitCode, err } = await run([], { answer: 'no' });
  expect(exitCode).toBe(1);
  expect(err).toContain(`from: ${OLD}\n  to:   ${NEW}\n`);
  expect(await run([])).toMatchObject({ exitCode: 64, err: expect.stringContaining('--yes') });
  expect(await feedRow()).toMatchObject({ base_url: OLD });
  expect(await run([], { answer: 'Y' })).toMatchObject({ exitCode: 0 });
  expect(await feedRow()).toMatchObject({ base_url: NEW });
});

it('changes nothing when the configured address is invalid', async () => {
  const env = {
    DATABASE_URL: given.url,
    SCANFEED_API_KEY: 'key-of-the-test',
    SCANFEED_BASE_URL: 'http://elsewhere.test/v1',
  };
  const err = expect.stringContaining('SCANFEED_BASE_URL is "http://elsewhere.test/v1", but http: would send the key');
  expect(await run(['--yes'], { env })).toMatchObject({ exitCode: 78, out: '', err });
  expect(await feedRow()).toMatchObject({ base_url: OLD });
});

it('changes nothing when the feed already belongs to the address', async () => {
  const env = { DATABASE_URL: given.url, SCANFEED_API_KEY: 'key-of-the-test', SCANFEED_BASE_URL: OLD };
  expect(await run([], { env })).toMatchObject({
    exitCode: 0,
    out: `The feed default already belongs to ${OLD}.\n`,
  });
  expect(await bench.store.renewLease(feed.lease, 30_000)).not.toBeNull();
});
