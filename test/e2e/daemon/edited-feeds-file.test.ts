import { EventEmitter, once } from 'node:events';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/core/clock.js';
import { runDaemon } from '../../../src/daemon/run-daemon.js';
import type { StatusReport } from '../../../src/observability/status-page/status-report.js';
import { readFeedsFile, readFeedsText, versionOf } from '../../../src/settings/feeds-file.js';
import { readSettings } from '../../../src/settings/settings.js';
import { GROUPS } from '../../../src/settings/variables.js';
import { ACCEPT_FEEDS } from '../../support/accept-feeds.js';
import { captureLeaks } from '../../support/canaries/capture-leaks.js';
import { editedFeedsFile, KEYS, ORGANIZATIONS, type Organization } from '../../support/edited-feeds-file.js';
import { recordingLogger } from '../../support/observed.js';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';
import { cases } from '../../support/thorough.js';

const setup = useProgram();

/** The daemon looks at its file every 5 s, which is every 50 ms here. */
const SPEED = 100;

/** A clock on which time runs faster. */
const fastClock: Clock = {
  ...systemClock,
  monotonic: () => systemClock.monotonic() * SPEED,
  sleep: (ms, signal) => systemClock.sleep(ms / SPEED, signal),
};

/** An emulated service of several organizations, a database, and a folder with the keys. */
async function setUp() {
  const apiKeys = ORGANIZATIONS.flatMap((organization) =>
    KEYS.map((key) => ({
      organization,
      file: `${organization}-${key}`,
      key: `${setup.secrets.apiKey}-${organization}-${key}`,
    })),
  );
  const service = await setup.startService({ apiKeys, history: 5 });
  const database = await setup.createDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-feeds-'));
  setup.afterwards(() => rm(folder, { recursive: true, force: true }));
  const keyOf = new Map(apiKeys.map(({ file, key }) => [file, key]));
  const writeKey = (file: string) => writeFile(join(folder, file), keyOf.get(file) ?? '');
  for (const { file } of apiKeys) if (!file.endsWith('-late')) await writeKey(file);
  const { SCANFEED_API_KEY: _, ...environment } = setup.environment(service, database);
  // The database's clock is not faster, so a lease has to last for a while on the daemon's.
  const env = { ...environment, SCANFEED_LEASE_TTL: '2m', SCANFEED_FEEDS_FILE: join(folder, 'feeds.yaml') };
  expect(await setup.program(['migrate'], { DATABASE_URL: database.url }).exited).toMatchObject({ code: 0 });
  const names = ORGANIZATIONS.flatMap((name) => [name, ...[1, 2, 3].map((n) => `${name}-${n}`)]);
  await database.query(ACCEPT_FEEDS, [names, service.url]);
  return { service, database, folder, keyOf, writeKey, env };
}

type Setup = Awaited<ReturnType<typeof setUp>>;

/** Runs the daemon in this process, with a fast clock, on the feeds file of the environment. */
async function startDaemon(env: Setup['env']) {
  const path = env.SCANFEED_FEEDS_FILE;
  const watcher = new EventEmitter();
  const changes = {
    read: () => readFeedsFile(path, env, { clock: fastClock }),
    readText: async () => {
      watcher.emit('look');
      return readFeedsText(path);
    },
    versionOf,
  };
  const settings = readSettings(env, { need: GROUPS.filter((group) => group !== 'service') });
  const { logger, lines, until } = recordingLogger();
  const stop = new AbortController();
  const source = { file: await changes.read(), changes };
  const { admin, stopped } = runDaemon(settings, source, { logger, tracer: null, clock: fastClock }, stop.signal);
  setup.afterwards(() => {
    stop.abort();
    return stopped;
  });
  await until('admin server is listening');
  const { port } = admin.address() as AddressInfo;
  const get = async (page: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${page}`);
    const body = await response.text();
    captureLeaks(page, body);
    return { status: response.status, body };
  };
  /** Waits until the daemon has followed the file as it is now. */
  let held = 0;
  const untilFollowed = async () => {
    await once(watcher, 'look'); // which reads it as it is now, perhaps for the first time
    await once(watcher, 'look'); // so that has been followed, or is held
    const moves = lines.filter(({ message }) => message === 'delaying the move of feeds').length;
    if (moves === held) return;
    held = moves;
    // A minute, at every look.
    for (let looks = 0; looks < 14; looks += 1) await once(watcher, 'look');
  };
  return { get, lines, untilFollowed };
}

type RunningDaemon = Awaited<ReturnType<typeof startDaemon>>;

const namesOf = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name).sort();

/** Returns the feeds that run and those whose entries are invalid, as each page of the daemon and the database show them. */
async function shown({ get }: RunningDaemon, { database }: Setup) {
  const status = JSON.parse((await get('/status.json')).body) as {
    readonly feeds: readonly StatusReport[];
    readonly invalid: readonly { readonly name: string }[];
  };
  const metrics = (await get('/metrics')).body;
  const leases = await database.query<{ name: string }>(
    'SELECT name FROM scanfeed.feeds WHERE lease_holder IS NOT NULL',
  );
  return {
    status: status.feeds.map(({ feed }) => feed).sort(),
    caughtUp: status.feeds.flatMap(({ feed, caughtUp }) => (caughtUp ? [feed] : [])).sort(),
    invalid: namesOf(status.invalid),
    metrics: [...metrics.matchAll(/^scanfeed_caught_up\{feed="(.*)"\}/gm)].map(([, name]) => name).sort(),
    invalidInMetrics: Number(/^scanfeed_feeds\{state="invalid"\} (\d+)$/m.exec(metrics)?.[1]),
    leases: namesOf(leases),
  };
}

function expectedOf(running: Iterable<string>, invalid: readonly string[]) {
  const names = [...running].sort();
  const sorted = [...invalid].sort();
  return {
    ...{ status: names, caughtUp: names, metrics: names, leases: names },
    ...{ invalid: sorted, invalidInMetrics: sorted.length },
  };
}

/**
 * Gives each feed of an organization runs of its own, as if its feeds had been renamed before. A feed without any is compared with
 * all runs of the schema when its key changes, and this schema has several organizations.
 */
const SHARE_RUNS = `
  UPDATE scanfeed.runs SET feed = left(feed, -1) || numbered.n
  FROM (SELECT scan_id, 1 + row_number() OVER (PARTITION BY feed) % 3 AS n FROM scanfeed.runs) AS numbered
  WHERE numbered.scan_id = runs.scan_id`;

test('runs what the last valid file says when the file is edited many times', async () => {
  const given = await setUp();
  const { service, keyOf, env } = given;
  const file = editedFeedsFile({ ...given, path: env.SCANFEED_FEEDS_FILE }, 11);
  const { running, invalid } = file;
  await file.write();
  const daemon = await startDaemon(env);
  const requestsOf = (organization: string) => service.asked.filter((record) => record.organization === organization);

  const check = async (history: readonly string[]) => {
    await eventually(() => shown(daemon, given), { message: history.join(', ') }).toEqual(
      expectedOf(running.keys(), invalid()),
    );
    // A feed that restarts is listed with its old settings until it has stopped.
    for (const [name, { organization, key, pollInterval }] of running) {
      const expected = `Bearer ${keyOf.get(`${organization}-${key}`)}`;
      await eventually(() => requestsOf(organization).at(-1)?.headers.authorization, { message: name }).toBe(expected);
      const before = requestsOf(organization).length;
      if (pollInterval === '5s')
        await eventually(() => requestsOf(organization).length, { message: name }).toBeGreaterThan(before + 1);
    }
    const rare = [...running.values()].filter(({ pollInterval }) => pollInterval === '1h');
    const requestsOfRare = () => rare.map(({ organization }) => requestsOf(organization).length);
    await eventually(async () => {
      const before = requestsOfRare();
      for (let looks = 0; looks < 4; looks += 2) await daemon.untilFollowed();
      return requestsOfRare().map((count, index) => count - (before[index] ?? 0));
    }).toEqual(rare.map(() => 0));
  };
  await check([]);
  await given.database.query(SHARE_RUNS);
  const history: string[] = [];
  for (let edit = 1; edit <= cases(60, 200); edit += 1) {
    history.push(await file.edit());
    await daemon.untilFollowed();
    if (edit % 10 === 0) await check(history.splice(0));
  }
  await check(history);
});

test('leaves a feed to a container with the same process id when that feed is added to the file', async () => {
  const given = await setUp();
  const { database, folder, env } = given;
  const write = (...names: readonly Organization[]) =>
    writeFile(
      env.SCANFEED_FEEDS_FILE,
      names.map((name) => `- name: ${name}\n  apiKeyFile: ${join(folder, `${name}-one`)}\n`).join(''),
    );
  await write('north', 'south');
  const daemon = await startDaemon(env);
  await eventually(() => shown(daemon, given)).toEqual(expectedOf(['north', 'south'], []));
  await write('north');
  await eventually(() => shown(daemon, given)).toEqual(expectedOf(['north'], []));
  const other = `${hostname()}/${process.pid}/other`;
  await database.query(
    `UPDATE scanfeed.feeds SET lease_holder = '${other}', lease_home = 'scanfeed' WHERE name = 'south'`,
  );
  await database.query(`INSERT INTO scanfeed.processes VALUES ('${other}', 1, now(), now() + interval '1 hour')`);
  await write('north', 'south');
  const leaderOfSouth = async () => {
    const { feeds } = JSON.parse((await daemon.get('/status.json')).body) as { feeds: readonly StatusReport[] };
    return feeds.find(({ feed }) => feed === 'south')?.leaseHolder ?? null;
  };
  await eventually(leaderOfSouth).toBe(other);
  await daemon.untilFollowed();
  const [row] = await database.query("SELECT lease_holder FROM scanfeed.feeds WHERE name = 'south'");
  expect(row).toEqual({ lease_holder: other });
});

test('starts the feed of an invalid entry when its key file is made and the feeds file stays the same', async () => {
  const given = await setUp();
  const { folder, env, writeKey } = given;
  const entry = (name: Organization, key: string) =>
    `- name: ${name}\n  apiKeyFile: ${join(folder, `${name}-${key}`)}\n`;
  await writeFile(env.SCANFEED_FEEDS_FILE, entry('north', 'one') + entry('south', 'late'));
  const daemon = await startDaemon(env);
  await eventually(() => shown(daemon, given)).toEqual(expectedOf(['north'], ['south']));
  await writeKey('south-late');
  await eventually(() => shown(daemon, given)).toEqual(expectedOf(['north', 'south'], []));
});

test('follows the feeds of a mounted ConfigMap when its folder is replaced', async () => {
  const given = await setUp();
  const { folder, env } = given;
  const mount = join(folder, 'mount');
  await mkdir(mount);
  let version = 0;
  /** Updates the mount as the kubelet does: a new folder, to which the link `..data` is moved in one step. */
  const update = async (...names: readonly Organization[]) => {
    const previous = `..2026_01_01_00_00_0${version}`;
    version += 1;
    const next = `..2026_01_01_00_00_0${version}`;
    await mkdir(join(mount, next));
    const entries = names.map((name) => `- name: ${name}\n  apiKeyFile: ${join(folder, `${name}-one`)}\n`);
    await writeFile(join(mount, next, 'feeds.yaml'), entries.join(''));
    await symlink(next, join(mount, '..data_tmp'));
    await rename(join(mount, '..data_tmp'), join(mount, '..data'));
    await rm(join(mount, previous), { recursive: true, force: true });
  };
  await update('north', 'south');
  await symlink('..data/feeds.yaml', join(mount, 'feeds.yaml'));
  const daemon = await startDaemon({ ...env, SCANFEED_FEEDS_FILE: join(mount, 'feeds.yaml') });
  await eventually(() => shown(daemon, given)).toEqual(expectedOf(['north', 'south'], []));
  await update('south', 'east');
  await eventually(() => shown(daemon, given)).toEqual(expectedOf(['east', 'south'], []));
  await update('west');
  await eventually(() => shown(daemon, given)).toEqual(expectedOf(['west'], []));
  expect(daemon.lines.filter(({ message }) => message === 'feeds file refused')).toEqual([]);
});
