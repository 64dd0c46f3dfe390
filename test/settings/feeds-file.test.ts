import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { changesOf } from '../../src/settings/feed-changes.js';
import { readFeedsFile, versionOf } from '../../src/settings/feeds-file.js';
import { describeMistake } from '../../src/settings/mistakes.js';
import { SettingsError } from '../../src/settings/settings.js';
import { files, LEAST } from '../support/settings.js';

const PATH = '/etc/scanfeed/feeds.yaml';
const KEY_FILES = { '/keys/acme': 'key-of-acme\n', '/keys/globex': 'key-of-globex\n' };

const clock = { ...systemClock, sleep: async () => {} };

function read(text: string, env: NodeJS.ProcessEnv = {}, contents: Readonly<Record<string, string>> = {}) {
  return readFeedsFile(
    PATH,
    { ...LEAST, ...env },
    { readFile: files({ ...KEY_FILES, [PATH]: text, ...contents }), clock },
  );
}

/** Returns the mistakes of the only invalid feed, without the name of the file. */
async function mistakesOf(text: string, env: NodeJS.ProcessEnv = {}): Promise<readonly string[]> {
  const { invalid } = await read(text, env);
  expect(invalid).toHaveLength(1);
  return (invalid[0]?.mistakes ?? []).map(describeMistake);
}

async function rejectionOf(text: string, env: NodeJS.ProcessEnv = {}): Promise<readonly string[]> {
  const error: unknown = await read(text, env).catch((reason) => reason);
  if (!(error instanceof SettingsError)) throw new Error('the file was accepted');
  return error.mistakes.map(describeMistake);
}

async function namesIn(text: string): Promise<readonly string[]> {
  return (await read(text)).feeds.map(({ feed }) => feed.name);
}

const FULL = `
- name: acme
- name: globex
  apiKeyFile: /keys/globex
  baseUrl: https://eu.service.example/v1/
  schema: globex
  filters:
    environment: all
    status: [failed, completed]
    documentType: rechnung
  start: 2026-01-31T00:00:00Z
  markdown: yes
  pollInterval: 1m
  readerRole: globex_reader
`;

test('the version of a file changes when it is replaced, made readable or removed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'feeds-file-'));
  const path = join(folder, 'key');
  const versions: string[] = [];
  const take = async () => versions.push(await versionOf(path).catch(() => 'missing'));
  try {
    await take();
    await writeFile(path, 'one', { mode: 0o000 });
    await take();
    await setTimeout(20); // the clock of the file system
    await chmod(path, 0o400);
    await take();
    await take();
    await writeFile(`${path}-new`, 'two');
    await rename(`${path}-new`, path);
    await take();
  } finally {
    await rm(folder, { recursive: true });
  }
  expect(versions[2]).toBe(versions[3]);
  expect(new Set(versions).size).toBe(4);
});

describe('the feeds file', () => {
  test('overrides the environment with each key, and inherits the others', async () => {
    const { feeds, invalid } = await read(FULL, {
      SCANFEED_POLL_INTERVAL: '30s',
      SCANFEED_LEASE_TTL: '20s',
      SCANFEED_READER_ROLE: 'common_reader',
    });
    expect(invalid).toEqual([]);
    const [acme, globex] = feeds;
    expect(acme?.service.baseUrl).toBe('https://service.example/v1');
    expect(await acme?.service.readApiKey()).toBe('key-of-the-test');
    expect(acme?.feed).toMatchObject({ name: 'acme', pollIntervalMs: 30_000, leaseTtlMs: 20_000, start: 'beginning' });
    expect(globex?.service.baseUrl).toBe('https://eu.service.example/v1');
    expect(await globex?.service.readApiKey()).toBe('key-of-globex');
    expect(acme?.database.readerRole).toBe('common_reader');
    expect(globex?.database).toMatchObject({ schema: 'globex', readerRole: 'globex_reader' });
    expect(globex?.feed).toMatchObject({
      name: 'globex',
      filters: { environment: 'all', status: ['completed', 'failed'], documentType: 'rechnung' },
      start: new Date('2026-01-31T00:00:00Z'),
      markdown: true,
      pollIntervalMs: 60_000,
      leaseTtlMs: 20_000,
    });
    expect(globex?.database.connection).toBe(acme?.database.connection);
  });

  test('reads JSON', async () => {
    const text = JSON.stringify([
      { name: 'acme', filters: { status: ['failed'], documentType: null }, markdown: true },
    ]);
    const { feeds } = await read(text, { SCANFEED_DOCUMENT_TYPE: 'rechnung' });
    expect(feeds[0]?.feed).toMatchObject({ filters: { status: ['failed'], documentType: null }, markdown: true });
  });

  test('reads a name as it is written, also if it looks like a number', async () => {
    expect(await namesIn('- name: 007\n- name: 1e3\n- name: "true"\n- name: null-1\n')).toEqual([
      '007',
      '1e3',
      'true',
      'null-1',
    ]);
  });

  test('ignores tags', async () => {
    expect(await namesIn('!!pairs\n- name: acme\n')).toEqual(['acme']);
    expect(await namesIn('%YAML 1.1\n---\n!!omap\n- name: acme\n')).toEqual(['acme']);
  });

  test('reads an empty list', async () => {
    expect(await read('[]')).toEqual({ feeds: [], invalid: [], invalidKeyFiles: [], text: '[]' });
  });

  test('reads the example in docs/settings.md', async () => {
    const reference = readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8');
    const [, example = ''] = /```yaml\n(- name: acme[^`]*)```/.exec(reference) ?? [];
    const keys = { '/run/secrets/scanfeed/acme': 'one', '/run/secrets/scanfeed/globex': 'two' };
    const { feeds, invalid } = await read(example, {}, keys);
    expect(invalid).toEqual([]);
    expect(await Promise.all(feeds.map(({ service }) => service.readApiKey()))).toEqual(['one', 'two']);
  });

  test('sets the default where a key has no value', async () => {
    const env = { SCANFEED_POLL_INTERVAL: '30s', SCANFEED_READER_ROLE: 'common_reader' };
    const { feeds } = await read('- name: acme\n  pollInterval:\n  filters:\n  readerRole:\n', env);
    expect(feeds[0]?.feed.pollIntervalMs).toBe(5_000);
    expect(feeds[0]?.database.readerRole).toBeNull();
  });

  test('reports all mistakes with the line, the feed and the key', async () => {
    const { feeds, invalid } = await read(`
- name: acme
  pollInterval: 5
  filters: {environment: live, status: completed}
  colour: blue
- name: globex
- name: initech
  apiKeyFile: /keys/none
  baseUrl: [https://service.example/v1]
  schema: Initech
  filters: {status: [done]}
`);
    expect(feeds.map(({ feed }) => feed.name)).toEqual(['globex']);
    expect(invalid.map(({ name, mistakes }) => [name, mistakes.map(({ variable }) => variable)])).toEqual([
      [
        'acme',
        [
          'feeds.yaml line 5, feed acme, colour',
          'feeds.yaml line 4, feed acme, filters.environment',
          'feeds.yaml line 3, feed acme, pollInterval',
        ],
      ],
      [
        'initech',
        [
          'feeds.yaml line 9, feed initech, baseUrl',
          'feeds.yaml line 8, feed initech, apiKeyFile',
          'feeds.yaml line 11, feed initech, filters.status',
          'feeds.yaml line 10, feed initech, schema',
        ],
      ],
    ]);
  });

  test.each([
    ['pollInterval: 5', 'pollInterval is "5"; expected: a duration from 10ms to 1d'],
    ['colour: blue', 'colour is set (value hidden), but a feed has no such key; expected: name, baseUrl, apiKeyFile'],
    ['filters.status: completed', '"filters.status" is set (value hidden), but a feed has no such key'],
    ['filters: {statuses: completed}', 'filters.statuses is set (value hidden), but a feed has no such key'],
    ['filters: completed', 'filters is set (value hidden), but it is not a map'],
    ['filters: {status: []}', 'filters.status is set (value hidden), but it is not a list of values'],
    ['filters: {status: [failed, ~]}', 'filters.status is "failed,~"; expected: one or more of completed, failed'],
    ['readerRole: Public', 'readerRole is "Public"; expected: lower-case letters'],
    ['schema: {name: acme}', 'schema is set (value hidden), but it is not one value; expected: lower-case letters'],
    ['schema: [acme]', 'schema is set (value hidden), but it is not one value'],
    ['? [a, b]\n  : c', '"" is set (value hidden), but a feed has no such key'],
    ['<<: {schema: acme}', '"<<" is set (value hidden), but a feed has no such key'],
    ['apiKeyFile: &a /keys/acme\n  schema: *a', 'schema is set (value hidden), but it is an alias'],
  ])('rejects the feed with %j', async (lines, mistake) => {
    const [found, ...others] = await mistakesOf(`- name: acme\n  ${lines}\n- name: globex\n`);
    expect(found).toMatch(/^feeds\.yaml line [23], feed acme, /);
    expect(found).toContain(`feed acme, ${mistake}`);
    expect(others).toEqual([]);
  });

  test('rejects a feed with a key that is set twice', async () => {
    expect(
      await mistakesOf('- name: acme\n  markdown: true\n  markdown: false\n  filters: {}\n  filters: {}\n'),
    ).toEqual([
      expect.stringContaining('line 3, feed acme, markdown is set (value hidden), but it is set twice'),
      expect.stringContaining('line 5, feed acme, filters is set (value hidden), but it is set twice'),
    ]);
  });

  test('rejects all feeds with the same name, also in one line', async () => {
    const { feeds, invalid } = await read('[{"name":"acme"},{"name":"globex"},{"name":"acme"}]');
    expect(feeds.map(({ feed }) => feed.name)).toEqual(['globex']);
    expect(invalid.map(({ name, mistakes }) => [name, mistakes.map(({ reason }) => reason)])).toEqual([
      ['acme', ['the feed in line 1 has the same name', 'the feed in line 1 has the same name']],
    ]);
  });

  test('names the variable if a wrong value is inherited', async () => {
    const { feeds, invalid } = await read('- name: acme\n- name: globex\n  pollInterval: 1m\n', {
      SCANFEED_POLL_INTERVAL: '5',
    });
    expect(feeds.map(({ feed }) => feed.name)).toEqual(['globex']);
    expect(invalid[0]?.mistakes.map(describeMistake)).toEqual([
      expect.stringContaining('SCANFEED_POLL_INTERVAL is "5"; expected'),
    ]);
  });

  test('names the key if a required value is missing', async () => {
    expect(await mistakesOf('- name: acme\n', { SCANFEED_BASE_URL: '', SCANFEED_API_KEY: '' })).toEqual([
      expect.stringContaining('feeds.yaml line 1, feed acme, baseUrl is not set; expected: the https: URL'),
      'feeds.yaml line 1, feed acme, apiKeyFile is not set; expected: the path of a file that contains the key',
    ]);
  });

  test.each([
    ['- name: acme\n  filters: {a: b\n', /line \d is not valid YAML/],
    ['- name: acme\n---\n- name: globex\n', /is not valid YAML/],
    ['', /it is not a list/],
    ['feeds:\n  - name: acme\n', /it is not a list/],
    ['- acme\n', /the entry in line 1 has no valid name \(1 to 63 letters/],
    ['- name: acme\n- schema: globex\n', /the entry in line 2 has no valid name/],
    ['- name: a b\n', /the entry in line 1 has no valid name/],
    ['- &a {name: acme}\n- *a\n', /the entry in line 2 has no valid name/],
    [`- name: acme\n  filters: ${'['.repeat(100_000)}`, /is not valid YAML/],
    [`[${'1,'.repeat(10_001)}]`, /it lists 10001 feeds, more than 10000/],
    [`# ${'x'.repeat(2 ** 22)}\n[]`, /it has 4194309 bytes, more than 4 MiB/],
  ])('is rejected as a whole when it cannot be used: %#', async (text, reason) => {
    const mistakes = await rejectionOf(text);
    expect(mistakes).toEqual([expect.stringMatching(reason)]);
    expect(mistakes[0]).toContain(`SCANFEED_FEEDS_FILE is "${PATH}", but `);
  });

  test('is rejected without being read when it is too large', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'feeds-file-'));
    const path = join(folder, 'feeds.yaml');
    try {
      await writeFile(path, '');
      await truncate(path, 2 ** 22 + 1);
      const readFile = () => {
        throw new Error('it was read');
      };
      await expect(readFeedsFile(path, LEAST, { readFile, clock })).rejects.toThrow(
        'it has 4194305 bytes, more than 4 MiB',
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('names the key files of invalid entries', async () => {
    const text = `
- name: valid
  apiKeyFile: /keys/acme
- name: acme
  apiKeyFile: /keys/missing
- name: globex
  apiKeyFile: /keys/globex
  pollInterval: never
- name: initech
  pollInterval: never
`;
    expect((await read(text)).invalidKeyFiles).toEqual(['/keys/missing', '/keys/globex']);
    const env = { SCANFEED_API_KEY: '', SCANFEED_API_KEY_FILE: '/keys/of-all' };
    expect((await read('- name: acme\n- name: globex\n', env)).invalidKeyFiles).toEqual(['/keys/of-all']);
  });

  test('is rejected as a whole when it is missing', async () => {
    await expect(readFeedsFile(PATH, LEAST, { readFile: files({}), clock })).rejects.toThrow(
      'reading it failed (ENOENT)',
    );
  });

  test('is rejected as a whole, with all mistakes once, when a variable of all feeds is wrong', async () => {
    const text = '- name: acme\n- name: globex\n  pollInterval: 5\n- schema: initech\n';
    expect(await rejectionOf(text, { DATABASE_URL: 'mysql://db', SCANFEED_DATABASE_POOL: '0' })).toEqual([
      expect.stringContaining('the entry in line 4 has no valid name'),
      expect.stringContaining('DATABASE_URL is set (value hidden), but it does not begin with postgres://'),
      expect.stringContaining('SCANFEED_DATABASE_POOL is "0"'),
      expect.stringContaining('feeds.yaml line 3, feed globex, pollInterval is "5"'),
    ]);
  });

  test('requires only the groups that are needed', async () => {
    const contents = files({ [PATH]: '- name: acme\n  schema: acme\n' });
    const { feeds } = await readFeedsFile(
      PATH,
      { DATABASE_URL: LEAST.DATABASE_URL },
      { need: ['database'], readFile: contents, clock },
    );
    expect(feeds.map(({ feed, database }) => [feed.name, database.schema])).toEqual([['acme', 'acme']]);
  });

  test('uses only a text that reads the same a second later', async () => {
    const whole = '- name: acme\n  apiKeyFile: /keys/acme\n  schema: acme\n';
    // Rewritten in place: empty, then without its last line.
    const texts = ['', whole.replace('  schema: acme\n', ''), whole, whole];
    const pauses: number[] = [];
    const readFile = (path: string) => (path === PATH ? (texts[pauses.length] ?? '') : 'key');
    const sleep = async (ms: number) => void pauses.push(ms);
    const { feeds } = await readFeedsFile(PATH, LEAST, { readFile, clock: { ...clock, sleep } });
    expect(feeds.map(({ database }) => database.schema)).toEqual(['acme']);
    expect(pauses).toEqual([1000, 1000, 1000]);
  });

  test('reads a changed key without being read again', async () => {
    const contents: Record<string, string> = {
      [PATH]: '- name: acme\n  apiKeyFile: /keys/acme\n',
      '/keys/acme': 'one',
    };
    const { feeds } = await readFeedsFile(PATH, LEAST, { readFile: (path) => files(contents)(path), clock });
    contents['/keys/acme'] = 'two';
    expect(await feeds[0]?.service.readApiKey()).toBe('two');
  });

  test('shows no key and no path of a key in settings and mistakes', async () => {
    const secrets = /secret-of-acme|\/keys\//;
    const { feeds } = await read('- name: acme\n  apiKeyFile: /keys/acme\n', {}, { '/keys/acme': 'secret-of-acme' });
    expect(inspect(feeds[0]?.service.readApiKey, { depth: null })).not.toMatch(secrets);
    for (const lines of [
      'apiKey: secret-of-acme',
      'apiKeyFile: secret-of-acme',
      'apiKeyFile: [secret-of-acme]',
      'apiKeyFile: /keys/none',
      'filters: {key: secret-of-acme}',
      'filters: secret-of-acme',
      'filters: {apiKey:secret-of-acme}',
    ]) {
      const [mistake] = await mistakesOf(`- name: acme\n  ${lines}\n`);
      expect(mistake).toBeDefined();
      expect(mistake).not.toMatch(secrets);
    }
    for (const text of [
      '- name: secret-of-acme!\n',
      '- name: acme\n  apiKeyFile: "/keys/a" secret-of-acme\n',
      '- name: acme\n  apiKeyFile: |secret-of-acme\n',
    ]) {
      expect((await rejectionOf(text)).join('\n')).not.toMatch(secrets);
    }
  });

  test('creates the connection once for a thousand feeds', async () => {
    const text = Array.from(
      { length: 1_000 },
      (_, n) => `- name: feed-${n}\n  apiKeyFile: /keys/acme\n  schema: s${n}\n`,
    );
    const { feeds } = await read(text.join(''));
    expect(feeds).toHaveLength(1_000);
    expect(new Set(feeds.map(({ database }) => database.connection)).size).toBe(1);
    expect(new Set(feeds.map(({ database }) => database.schema)).size).toBe(1_000);
  });
});

describe('changesOf', () => {
  async function changesBetween(before: string, after: string) {
    const running = new Map((await read(before)).feeds.map((settings) => [settings.feed.name, settings]));
    const { added, removed, changed } = changesOf(running, await read(after));
    const nameOf = ({ feed }: (typeof added)[number]) => feed.name;
    return { added: added.map(nameOf), removed, changed: changed.map(nameOf) };
  }
  const NOTHING = { added: [], removed: [], changed: [] };

  test('returns nothing when only the order or the notation has changed', async () => {
    const before = '[{name: a}, {name: b, pollInterval: 60s, filters: {status: [failed, completed]}}]';
    expect(await changesBetween(before, '[{name: b, pollInterval: 1m}, {name: a, start: beginning}]')).toEqual(NOTHING);
  });

  test.each([
    'baseUrl: https://other.example/v1',
    'apiKeyFile: /keys/globex',
    'schema: other',
    'filters: {status: failed}',
    'filters: {environment: all}',
    'filters: {documentType: rechnung}',
    'start: live',
    'start: 2026-01-31T00:00:00Z',
    'markdown: true',
    'pollInterval: 1m',
    'readerRole: other_reader',
  ])('returns a feed with another %s', async (key) => {
    expect(await changesBetween('[{name: a}, {name: b}]', `[{name: a, ${key}}, {name: b}]`)).toEqual({
      ...NOTHING,
      changed: ['a'],
    });
  });

  test('returns nothing when the content of a key file has changed', async () => {
    const text = '- name: a\n  apiKeyFile: /keys/acme\n';
    const running = new Map((await read(text)).feeds.map((settings) => [settings.feed.name, settings]));
    expect(changesOf(running, await read(text, {}, { '/keys/acme': 'rotated' }))).toEqual(NOTHING);
  });
});
