import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { StatusReport } from '../../../src/observability/status-page/status-report.js';
import { type Daemon, eventually } from '../../support/program/daemon.js';
import { type DaemonDatabase, type ServiceDouble, useProgram } from '../../support/program/setup.js';

const setup = useProgram();

const ORGANIZATIONS = ['north', 'south', 'east', 'west'] as const;

/** An emulated service of several organizations, or of one with several keys, a database, and a feeds file with their keys. */
async function setUp({ areOne = false } = {}) {
  const apiKeys = ORGANIZATIONS.map((organization) => ({
    key: `${setup.secrets.apiKey}-${organization}`,
    organization: areOne ? 'north' : organization,
  }));
  const service = await setup.startService({ apiKeys, history: 30 });
  const database = await setup.createDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-feeds-'));
  setup.afterwards(() => rm(folder, { recursive: true, force: true }));
  for (const [index, { key }] of apiKeys.entries()) await writeFile(join(folder, ORGANIZATIONS[index] ?? ''), key);
  const path = join(folder, 'feeds.yaml');
  /** Replaces the file as a whole, as Kubernetes does. */
  const write = async (text: string) => {
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  };
  const writeFeeds = (...feeds: readonly string[]) => write(feeds.length === 0 ? '[]\n' : feeds.join(''));
  const entry = (name: string, more = '') =>
    `- name: ${name}\n  baseUrl: ${service.url}\n  apiKeyFile: ${join(folder, name)}\n${more}`;
  const { SCANFEED_API_KEY: _, SCANFEED_BASE_URL: __, ...inherited } = setup.environment(service, database);
  const start = () => setup.daemon({ ...inherited, SCANFEED_FEEDS_FILE: path });
  return { service, database, write, writeFeeds, entry, start };
}

async function reportsOf(daemon: Daemon): Promise<ReadonlyMap<string, StatusReport>> {
  const { feeds } = JSON.parse((await daemon.get('/status.json')).body) as { feeds: readonly StatusReport[] };
  return new Map(feeds.map((report) => [report.feed, report]));
}

const caughtUp = (daemon: Daemon) =>
  eventually(async () =>
    [...(await reportsOf(daemon)).values()].flatMap(({ feed, caughtUp: is }) => (is ? [feed] : [])).sort(),
  );

const runsByFeed = async (database: DaemonDatabase, schema = 'scanfeed') =>
  Object.fromEntries(
    (
      await database.query<{ feed: string; runs: number }>(
        `SELECT feed, count(*)::int AS runs FROM ${schema}.runs GROUP BY feed ORDER BY feed`,
      )
    ).map(({ feed, runs }) => [feed, runs]),
  );

const requestsOf = ({ asked }: ServiceDouble) => asked.length;

test('follows each feed of the file with its own key and schema, and reports each', async () => {
  const { database, writeFeeds, entry, start } = await setUp();
  await writeFeeds(
    entry('north'),
    entry('south', '  schema: south\n  filters:\n    environment: all\n'),
    entry('east', '  schema: east\n'),
  );
  const daemon = start();
  await caughtUp(daemon).toEqual(['east', 'north', 'south']);
  expect(Object.keys(await runsByFeed(database))).toEqual(['north']);
  expect(Object.keys(await runsByFeed(database, 'south'))).toEqual(['south']);
  expect(await runsByFeed(database, 'east')).toEqual({ east: expect.any(Number) });
  expect(await daemon.get('/readyz')).toMatchObject({ status: 200 });
  expect((await daemon.get('/metrics')).body).toContain('scanfeed_caught_up{feed="east"} 1\n');
  expect(
    daemon
      .logged('started leading the feed')
      .map(({ feed }) => feed)
      .sort(),
  ).toEqual(['east', 'north', 'south']);
  expect(daemon.logged('admin server is listening')[0]).not.toHaveProperty('feed');
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  const leases = await database.query(
    'SELECT lease_holder FROM scanfeed.feeds UNION ALL SELECT lease_holder FROM east.feeds',
  );
  expect(leases).toEqual([{ lease_holder: null }, { lease_holder: null }]);
});

test('holds a feed whose schema belongs to another organization, and stores nothing of it', async () => {
  const { database, writeFeeds, entry, start } = await setUp();
  await writeFeeds(entry('north'), entry('south', '  schema: south\n'));
  const before = start();
  await caughtUp(before).toEqual(['north', 'south']);
  const stored = () => database.query('SELECT feed, scan_id, revision, xmin FROM scanfeed.runs ORDER BY scan_id');
  const runs = await stored();
  await before.stop();
  // The file is rewritten in place, and only its last line is missing.
  await writeFeeds(entry('north'), entry('south'));
  const daemon = start();
  await daemon.logs('holding: action required', { feed: 'south', kind: 'another_organization' });
  expect(await stored()).toEqual(runs);
  expect(await database.query('SELECT name FROM scanfeed.feeds')).toEqual([{ name: 'north' }]);
});

test('shares feeds that have a schema each with another process, which leads them all when the first one is killed', async () => {
  const { database, writeFeeds, entry, start } = await setUp();
  await writeFeeds(...ORGANIZATIONS.map((name) => entry(name, `  schema: ${name}\n`)));
  const led = async (daemon: Daemon) => [...(await reportsOf(daemon)).values()].filter(({ role }) => role === 'leader');
  const first = start();
  await eventually(async () => (await led(first)).length).toBe(4);
  const second = start();
  await eventually(async () => Promise.all([first, second].map(async (daemon) => (await led(daemon)).length))).toEqual([
    2, 2,
  ]);
  // The schema of the settings, which has no feed.
  expect(await database.query('SELECT FROM scanfeed.processes')).toHaveLength(2);
  expect(await database.query('SELECT FROM east.processes')).toHaveLength(0);
  await first.stop('SIGKILL');
  await eventually(async () => (await led(second)).length).toBe(4);
});

test('holds only the feed of an invalid entry, and follows the last valid file when the new one cannot be used', async () => {
  const { service, write, writeFeeds, entry, start } = await setUp({ areOne: true });
  await writeFeeds(entry('north'), entry('south', '  pollInterval: often\n'));
  const daemon = start();
  await caughtUp(daemon).toEqual(['north']);
  const invalid = await daemon.logs('invalid entry in the feeds file', { feed: 'south' });
  expect(String(invalid.mistakes)).toContain('often');
  expect(await daemon.metric('scanfeed_feeds{state="invalid"}')).toBe(1);
  await write('- name: [north\n');
  await daemon.logs('feeds file refused');
  const asked = requestsOf(service);
  await eventually(() => requestsOf(service)).toBeGreaterThan(asked + 3);
  await writeFeeds(entry('north'), entry('south'));
  await caughtUp(daemon).toEqual(['north', 'south']);
  expect(await daemon.metric('scanfeed_feeds{state="invalid"}')).toBe(0);
});

test('names every mistake and exits with 78 when the file cannot be used at the start', async () => {
  const { write, start } = await setUp();
  await write('feeds: none\n');
  const daemon = start();
  expect(await daemon.exited).toEqual({ code: 78, signal: null });
  expect(daemon.stderr).toContain('feeds.yaml');
  expect(daemon.stdout).toBe('');
});
