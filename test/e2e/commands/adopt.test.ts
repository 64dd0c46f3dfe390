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

it('needs no settings of the service, and checks the address like a setting, when an address is given', async () => {
  const env = { DATABASE_URL: given.url };
  expect(await run(['--yes'], { env })).toMatchObject({ exitCode: 78 });
  expect(await run(['--yes', '--base-url', 'https://Elsewhere.test/v1/'], { env })).toMatchObject({ exitCode: 0 });
  expect(await feedRow()).toMatchObject({ base_url: 'https://elsewhere.test/v1' });
});

it.each([
  ['no absolute address', 'elsewhere.test/v1', '--base-url is "elsewhere.test/v1", but it is not an absolute URL; '],
  [
    'plain http: across a network',
    'http://elsewhere.test/v1',
    '--base-url is "http://elsewhere.test/v1", but http: would send the key unencrypted; SCANFEED_ALLOW_HTTP=true allows it; ',
  ],
  [
    'a password, which is not repeated',
    'https://me:secret@x.test/v1',
    '--base-url is set (value hidden), but it contains a',
  ],
  [
    'a password with a slash, which is not repeated',
    'https://me:sec/secret@x.test/v1',
    '--base-url is set (value hidden)',
  ],
  ['a password and no scheme, which is not repeated', 'me:secret@x.test/v1', '--base-url is set (value hidden)'],
])('refuses an address with the message of the settings when it is invalid: %s', async (_, address, message) => {
  const env = { DATABASE_URL: given.url };
  const refused = await run(['--yes', '--base-url', address], { env });
  expect(refused).toMatchObject({ exitCode: 64, out: '', err: expect.stringContaining(`scanfeed: ${message}`) });
  expect(refused.err).not.toContain('secret');
  expect(await feedRow()).toMatchObject({ base_url: OLD });
});

it('allows plain http: when the settings allow it', async () => {
  const env = { DATABASE_URL: given.url };
  const moved = ['--yes', '--base-url', 'http://mesh.test/v1'];
  expect(await run(moved, { env: { ...env, SCANFEED_ALLOW_HTTP: 'true' } })).toMatchObject({ exitCode: 0 });
  expect(await feedRow()).toMatchObject({ base_url: 'http://mesh.test/v1' });
  expect(await run(moved, { env: { ...env, SCANFEED_ALLOW_HTTP: 'perhaps' } })).toMatchObject({ exitCode: 78 });
  expect(await run(['--yes', '--base-url', 'http://localhost:1/v1'], { env })).toMatchObject({ exitCode: 0 });
});

it('changes nothing when the feed already belongs to the address', async () => {
  expect(await run(['--base-url', OLD])).toMatchObject({
    exitCode: 0,
    out: `The feed default already belongs to ${OLD}.\n`,
  });
  expect(await bench.store.renewLease(feed.lease, 30_000)).not.toBeNull();
});
