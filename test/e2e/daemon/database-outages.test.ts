import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { canary } from '../../support/canaries/canary.js';
import { withConnection } from '../../support/postgres/maintenance.js';
import { type Daemon, eventually } from '../../support/program/daemon.js';
import { Gateway } from '../../support/program/gateway.js';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

const asAdministrator = (sql: string) => withConnection(inject('testServer').url, (client) => client.query(sql));

/** Waits until the daemon reports why it cannot start on the database. */
async function expectWaiting(daemon: Daemon, kind: string): Promise<void> {
  await daemon.failsRepeatedly('lease', 1);
  expect(await daemon.status()).toMatchObject({ role: 'starting', currentErrors: [{ stage: 'lease', kind }] });
  expect(await daemon.get('/livez')).toMatchObject({ status: 200 });
  const [error] = (await daemon.status()).currentErrors;
  expect(await daemon.get('/readyz')).toEqual({ status: 503, body: `not ready: ${error?.message}\n` });
  expect(daemon.logged().find((line) => line.stage === 'lease')).toMatchObject({ kind });
}

async function expectStarted(daemon: Daemon): Promise<void> {
  await daemon.catchesUp();
  expect(await daemon.get('/readyz')).toMatchObject({ status: 200 });
  expect(daemon.logged('recovered')).toMatchObject([{ stage: 'lease' }]);
}

test('waits when the database is unavailable at the start and later', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const gateway = await Gateway.to(database.url);
  setup.afterwards(() => gateway.close());
  service.deliver(5);
  const daemon = setup.daemon(setup.environment(service, { url: gateway.through(database.url) }));
  await expectWaiting(daemon, 'connection');
  await daemon.failsRepeatedly('lease', 2);
  await gateway.open();
  await expectStarted(daemon);

  await gateway.close();
  service.deliver(5);
  await daemon.failsRepeatedly('feed', 2);
  expect(await daemon.get('/livez')).toMatchObject({ status: 200 });
  expect(await daemon.get('/readyz')).toMatchObject({ status: 200 });
  await gateway.open();
  await daemon.catchesUp();
  expect(await database.query('SELECT count(*)::int AS runs FROM scanfeed.runs')).toEqual([{ runs: 10 }]);
  expect(daemon.stderr).toBe('');
});

test('logs a slow statement and its answer when it waits for a table lock', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const daemon = setup.daemon(setup.environment(service, database));
  await daemon.catchesUp();
  const locker = await database.connect();
  await locker.query('BEGIN; LOCK TABLE scanfeed.runs IN ACCESS EXCLUSIVE MODE');
  service.deliver(1);
  const { task } = await daemon.logs('waiting for PostgreSQL', { task: 'commitPage' });
  await locker.query('COMMIT');
  const { seconds } = await daemon.logs('PostgreSQL responded', { task });
  expect(seconds).toBeGreaterThanOrEqual(10);
  await daemon.catchesUp();
  expect(await database.query('SELECT count(*)::int AS runs FROM scanfeed.runs')).toEqual([{ runs: 1 }]);
  expect(daemon.logged('failed, retrying')).toEqual([]);
});

test('holds when the password is refused, and uses a new one in its file without a restart', async () => {
  const old = canary('old-password');
  setup.hide({ old });
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-password-'));
  setup.afterwards(() => rm(folder, { recursive: true }));
  const file = join(folder, 'url');
  await writeFile(file, database.url.replace(setup.secrets.password, old));
  const { DATABASE_URL: _, ...env } = setup.environment(service, database);
  const daemon = setup.daemon({ ...env, DATABASE_URL_FILE: file });
  await expectWaiting(daemon, 'authentication');
  await writeFile(file, database.url);
  await expectStarted(daemon);
});

test('waits when the database does not exist yet', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const name = `${database.name}_later`;
  const daemon = setup.daemon(
    setup.environment(service, { url: database.url.replace(`/${database.name}`, `/${name}`) }),
  );
  await expectWaiting(daemon, 'database_missing');
  setup.afterwards(() => asAdministrator(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
  await asAdministrator(`CREATE DATABASE ${name} OWNER ${database.role}`);
  await expectStarted(daemon);
});

test('holds when it may not migrate an empty database, until it is migrated', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const env = { ...setup.environment(service, database), SCANFEED_AUTO_MIGRATE: 'false' };
  const daemon = setup.daemon(env);
  await expectWaiting(daemon, 'schema');
  expect((await daemon.status()).currentErrors[0]?.message).toContain('run `scanfeed migrate`');
  expect(await setup.program(['migrate'], env).exited).toEqual({ code: 0, signal: null });
  await expectStarted(daemon);
});

test('stops writing when the schema becomes too new while it runs', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.deliver(5);
  const daemon = setup.daemon(setup.environment(service, database));
  await daemon.catchesUp();
  await database.query("INSERT INTO scanfeed.migrations VALUES (9999, 'of_a_newer_release', 9999)");
  await daemon.logs('holding: action required', { stage: 'lease', kind: 'schema' });
  expect((await daemon.status()).currentErrors[0]?.message).toContain('run the newer release');
  const holders = () => database.query('SELECT lease_holder FROM scanfeed.feeds');
  await eventually(holders).toEqual([{ lease_holder: null }]); // gives the feed back after it has logged why
  expect(await daemon.get('/readyz')).toMatchObject({ status: 200 });
  service.deliver(5);
  await daemon.failsRepeatedly('lease', 2);
  expect(await database.query('SELECT count(*)::int AS runs FROM scanfeed.runs')).toEqual([{ runs: 5 }]);

  await database.query('DELETE FROM scanfeed.migrations WHERE version = 9999');
  await daemon.catchesUp();
  await daemon.reaches({ runsWritten: 10 });
});
