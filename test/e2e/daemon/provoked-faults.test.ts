import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import * as doctor from '../../../src/cli/commands/doctor.js';
import * as status from '../../../src/cli/commands/status.js';
import type { CurrentError } from '../../../src/core/errors.js';
import type { FeedReport } from '../../../src/storage/operator/feed-report.js';
import { canary } from '../../support/canaries/canary.js';
import { runCommand } from '../../support/command.js';
import { requireTool } from '../../support/deployment/tools.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { makeReadOnly, urlOfDatabase, withConnection } from '../../support/postgres/maintenance.js';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';
import { canMount, mountSmallDisk, type SmallDisk } from '../../support/small-disk.js';
import { findChromium, launchChromium } from '../../support/status-page/browser.js';

const setup = useProgram();

/** A fault, and how it is shown. */
interface Fault {
  /** Resolves to the function that repairs it. */
  provoke(): Promise<() => unknown>;
  readonly kind: string;
  /** The headline of the status page. */
  readonly headline: 'Action required' | 'Failing, retrying';
  readonly runbook: string;
  /** In the message of the daemon. */
  readonly remedy: string;
  /** What `status` says if it cannot read what the daemon recorded, or if the daemon can record nothing. */
  readonly inStatus?: string;
  /** The same for `doctor`. */
  readonly inDoctor?: string;
}

/** Starts a daemon that is caught up. */
async function setUp(disk?: SmallDisk) {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  await disk?.takeDatabase(database.name);
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-faults-'));
  setup.afterwards(() => rm(folder, { recursive: true }));
  const keyFile = join(folder, 'key');
  await writeFile(keyFile, setup.secrets.apiKey);
  const { SCANFEED_API_KEY: _, ...given } = setup.environment(service, database);
  const env = { ...given, SCANFEED_API_KEY_FILE: keyFile };
  service.deliver(5);
  const daemon = setup.daemon(env);
  await daemon.catchesUp();
  /** Returns the output of a command, errors included. */
  const outputOf = async (command: 'status' | 'doctor', ...args: string[]) => {
    const { out, err } = await runCommand({ status, doctor }[command], [command, ...args], { env });
    return out + err;
  };
  return { service, database, daemon, keyFile, outputOf };
}

type Setup = Awaited<ReturnType<typeof setUp>>;

function faultsOf({ service, database, keyFile }: Setup) {
  const url = urlOfDatabase(inject('testServer').url, database.name);
  const asAdministrator = (sql: string) => withConnection(url, (client) => client.query(sql));
  const endSessions = () =>
    asAdministrator(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'scanfeed'`);
  const wrongKey = canary('wrong-key');
  setup.hide({ wrongKey });
  return {
    wrongKey: {
      provoke: async () => {
        await writeFile(keyFile, wrongKey);
        return () => writeFile(keyFile, setup.secrets.apiKey);
      },
      kind: 'http_401',
      headline: 'Action required',
      runbook: 'ScanfeedAuthenticationFailing',
      remedy: 'check the key',
    },
    wrongPassword: {
      provoke: async () => {
        await asAdministrator(`ALTER ROLE ${database.role} PASSWORD 'another'`);
        await endSessions();
        return () => asAdministrator(`ALTER ROLE ${database.role} PASSWORD '${setup.secrets.password}'`);
      },
      kind: 'authentication',
      headline: 'Action required',
      runbook: 'ScanfeedDatabaseUnavailable',
      remedy: 'check the role and its password',
      inStatus: 'check the role and its password',
      inDoctor: 'check the role and its password',
    },
    readOnly: {
      provoke: async () => {
        const undo = await makeReadOnly(url);
        await endSessions();
        return undo;
      },
      kind: 'read_only',
      headline: 'Failing, retrying',
      runbook: 'ScanfeedDatabaseUnavailable',
      remedy: 'default_transaction_read_only is on',
      inStatus: 'transactions are read-only; remove default_transaction_read_only',
      inDoctor: 'transactions are read-only; remove default_transaction_read_only',
    },
    fullDisk: {
      provoke: async () => {
        await asAdministrator(`
          CREATE FUNCTION refuse_space() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE SQLSTATE '53100'; END$$;
          CREATE TRIGGER full_disk BEFORE INSERT ON scanfeed.runs EXECUTE FUNCTION refuse_space()`);
        service.deliver(1);
        return () => asAdministrator('DROP FUNCTION refuse_space() CASCADE');
      },
      kind: 'disk_full',
      headline: 'Failing, retrying',
      runbook: 'ScanfeedDatabaseUnavailable',
      remedy: 'free space on its disk',
    },
    heldFeed: {
      provoke: async () => {
        const body = pageJson(Array.from({ length: 200 }, (_, n) => entryJson({ scanId: `bad-${n}`, status: 'odd' })));
        const headers = { 'content-type': 'application/json' };
        service.addFault({ kind: 'answer', operation: 'feed', status: 200, headers, body });
        return () => service.clearFaults();
      },
      kind: 'mostly_bad',
      headline: 'Action required',
      runbook: 'ScanfeedErrorRatioHigh',
      remedy: 'Ask the operators of the service what changed',
    },
    newerSchema: {
      provoke: async () => {
        await asAdministrator("INSERT INTO scanfeed.migrations VALUES (9999, 'of_a_newer_release', 9999)");
        return () => asAdministrator('DELETE FROM scanfeed.migrations WHERE version = 9999');
      },
      kind: 'schema',
      headline: 'Action required',
      runbook: 'ScanfeedDatabaseUnavailable',
      remedy: 'too new for this release of scanfeed: run the newer release',
      inStatus: 'too new for this release of scanfeed: run the newer release',
    },
  } satisfies Record<string, Fault>;
}

/** A failure as one of the places shows it. */
type Shown = Pick<CurrentError, 'kind' | 'since' | 'failures' | 'message' | 'runbook'>;

/** Returns the failures that the output of `status` or `doctor` shows as ongoing. */
function failuresIn(output: string): Shown[] {
  const current = output.split('Last errors:')[0] ?? '';
  const found = current.matchAll(
    /since (\S+Z), for [^,]+, (\d+) failures?, next attempt (?:now|in [^:]+): \w+ (\w+): (.*?) \(runbook (\w+)\)(?=; since \S+Z, for |$)/gm,
  );
  return [...found].map(([, since = '', failures, kind = '', message = '', runbook = '']) => {
    return { kind, since, failures: Number(failures), message, runbook };
  });
}

/** Returns the failures of the status page. */
function failuresOn(page: string): Shown[] {
  const items = page.matchAll(
    /\((\w+)\)<br>(.*?)<br>.*?datetime="([^"]+)".*?, (\d+) failures? in a row, next attempt .*?runbooks\/(\w+)\.md/g,
  );
  return [...items].map(([, kind = '', escaped = '', since = '', failures, runbook = '']) => {
    const message = escaped.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
    return { kind, message, since, failures: Number(failures), runbook };
  });
}

/** Returns the first of several stages that fail in the same way: it is the one in the log and in the database. */
function firstOf<F extends Pick<Shown, 'kind' | 'since'>>(failures: readonly F[], { kind }: Fault): F | undefined {
  return failures.filter((shown) => shown.kind === kind).sort((a, b) => Date.parse(a.since) - Date.parse(b.since))[0];
}

/**
 * Waits until a fault is shown, and checks that each place names its cause, its remedy, its beginning and its count, and that
 * the commands name no failure that is over. Returns how `/status.json` shows it.
 * @param from time at which it was provoked
 */
async function expectShown({ daemon, outputOf }: Setup, fault: Fault, from: number): Promise<CurrentError> {
  const { kind, headline, runbook, remedy, inStatus, inDoctor } = fault;
  const find = async () => firstOf((await daemon.status()).currentErrors, fault) as CurrentError;
  const expectSame = async (shown: Shown | undefined) => {
    const { message, since, failures } = await find();
    expect(shown?.message).toContain(message);
    expect(shown?.runbook).toBe(runbook);
    expect(isSameTime(shown?.since ?? '', since), `${shown?.since} and ${since}`).toBe(true);
    expect(shown?.failures).toBeLessThanOrEqual(failures);
  };
  await eventually(async () => (await find())?.failures).toBeGreaterThanOrEqual(2);
  const inJson = await find();
  expect(inJson).toMatchObject({
    message: expect.stringContaining(remedy),
    held: headline === 'Action required',
    runbook,
  });
  expect(Date.parse(inJson.nextTryAt)).toBeGreaterThan(from);
  expect(Date.parse(inJson.since)).toBeGreaterThanOrEqual(from);
  const { body } = await daemon.get('/');
  // Another fault may hold the feed at the same time.
  const isHeld = (await daemon.status()).currentErrors.some(({ held }) => held);
  expect(body).toContain(`>${isHeld ? 'Action required' : headline}</h1>`);
  const onPage = failuresOn(body);
  await expectSame(firstOf(onPage, fault));
  const logged = daemon.logged().find((line) => line.kind === kind && line.level !== 'info');
  expect(logged).toMatchObject({ failures: 1, error: { message: inJson.message } });
  expect(Date.parse(String(logged?.time))).toBeGreaterThanOrEqual(from);
  const currentKinds = async () => (await daemon.status()).currentErrors.map((current) => current.kind);
  const expectInOutput = async (command: 'status' | 'doctor', instead: string | undefined) => {
    let shown: Shown[] = [];
    const read = async () => {
      // Another stage may begin to fail because of the same fault while the command runs.
      const before = await currentKinds();
      const output = await outputOf(command);
      const current = new Set([...before, ...(await currentKinds())]);
      shown = failuresIn(output);
      const isNamed = instead === undefined ? firstOf(shown, fault) !== undefined : output.includes(instead);
      return { isNamed, areCurrent: shown.every((each) => current.has(each.kind)), output };
    };
    await eventually(read).toMatchObject({ isNamed: true, areCurrent: true });
    if (instead === undefined) await expectSame(firstOf(shown, fault));
  };
  await Promise.all([expectInOutput('status', inStatus), expectInOutput('doctor', inDoctor)]);
  return inJson;
}

/** The commands show whole seconds, and the database's clock has written them. */
function isSameTime(a: string, b: string): boolean {
  return Math.abs(Date.parse(a) - Date.parse(b)) < 2_000;
}

/** Waits until `status` shows a fault as over, and checks that it, `/status.json` and the log tell the same about it. */
async function expectOver({ daemon, outputOf }: Setup, fault: Fault, { since }: CurrentError): Promise<void> {
  await eventually(async () => firstOf((await daemon.status()).currentErrors, fault)).toBeUndefined();
  // A failure that another one has replaced has no such line.
  const recovered = daemon.logged('recovered').findLast(({ kind }) => kind === fault.kind);
  const { stage, failures } = { stage: expect.any(String), failures: expect.any(Number), ...recovered };
  const read = async () => {
    const [report] = JSON.parse((await outputOf('status', '--json')) || '[]') as FeedReport[];
    const errors = report?.recentErrors.filter((error) => error.kind === fault.kind) ?? [];
    return {
      ongoing: errors.filter(({ ongoing }) => ongoing),
      recorded: errors.filter((error) => isSameTime(error.since, since)),
    };
  };
  const recorded = expect.arrayContaining([expect.objectContaining({ stage, failures })]);
  await eventually(read).toEqual({ ongoing: [], recorded });
}

test('names each fault, its beginning, its count and its remedy in every place', async () => {
  const given = await setUp();
  for (const fault of Object.values(faultsOf(given))) {
    const from = Date.now();
    const repair = await fault.provoke();
    const shown = await expectShown(given, fault, from);
    await repair();
    await given.daemon.catchesUp();
    await expectOver(given, fault, shown);
  }
}, 400_000);

test('an open page shows each fault with its headline, next attempt, remedy and runbook, and its end, without a reload', async (context) => {
  requireTool(context, 'chromium', findChromium() !== undefined);
  const given = await setUp();
  const browser = await launchChromium();
  setup.afterwards(() => browser.close());
  const page = await browser.newPage();
  let loads = 0;
  page.on('load', () => {
    loads += 1;
  });
  await page.goto(await given.daemon.adminUrl());
  for (const fault of Object.values(faultsOf(given))) {
    const repair = await fault.provoke();
    await page.getByRole('heading', { level: 1, name: fault.headline }).waitFor();
    const item = page
      .getByRole('listitem')
      .filter({ hasText: `(${fault.kind})` })
      .filter({ hasText: fault.remedy })
      .first();
    await item.filter({ hasText: /since .* failures? in a row, next attempt (now|in \S+ \S+)/ }).waitFor();
    const runbook = item.getByRole('link', { name: 'Runbook' });
    expect(await runbook.getAttribute('href')).toBe(`runbooks/${fault.runbook}.md`);
    await repair();
    await page.getByRole('heading', { level: 1, name: 'Caught up' }).waitFor();
  }
  await page.getByRole('heading', { name: 'Current errors' }).waitFor({ state: 'detached' });
  expect(loads).toBe(1);
}, 400_000);

test('names the current one of two faults at once, and the other one when that is repaired', async () => {
  const given = await setUp();
  const { wrongKey, readOnly, heldFeed, wrongPassword, fullDisk, newerSchema } = faultsOf(given);
  const pairs: [Fault, Fault][] = [
    [wrongKey, readOnly],
    [heldFeed, wrongPassword],
    [fullDisk, newerSchema],
  ];
  for (const [first, second] of pairs) {
    const [from, repairFirst] = [Date.now(), await first.provoke()];
    const alone = await expectShown(given, first, from);
    const [secondFrom, repairSecond] = [Date.now(), await second.provoke()];
    const shown = await expectShown(given, second, secondFrom);
    await repairSecond();
    await expectOver(given, second, shown);
    const left = await expectShown(given, first, from);
    // With a newer schema the lease was given up: the feed is read, and fails, from the next lease on.
    if (second !== newerSchema) expect(left).toMatchObject({ since: alone.since });
    await repairFirst();
    await given.daemon.catchesUp();
    await expectOver(given, first, left);
  }
}, 400_000);

test.skipIf(!canMount)('names a full disk when no error was ever recorded on it', async (context) => {
  const disk = await mountSmallDisk(inject('testServer').url);
  if (disk === null) return context.skip('PostgreSQL runs in a container');
  setup.afterwards(() => disk.remove());
  const given = await setUp(disk);
  const fault: Fault = {
    provoke: async () => {
      await disk.fill();
      given.service.deliver(300); // more than the pages of the tables have room for
      return () => disk.free();
    },
    kind: 'disk_full',
    headline: 'Failing, retrying',
    runbook: 'ScanfeedDatabaseUnavailable',
    remedy: 'free space on its disk',
  };
  const from = Date.now();
  const repair = await fault.provoke();
  const shown = await expectShown(given, fault, from);
  expect(await given.outputOf('doctor')).toMatch(/FAIL +database writable .*free space on its disk/);
  await repair();
  await given.daemon.catchesUp();
  await expectOver(given, fault, shown);
});
