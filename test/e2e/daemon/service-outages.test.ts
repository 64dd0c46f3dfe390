import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCachingProxy } from '../../support/caching-proxy.js';
import { canary } from '../../support/canaries/canary.js';
import { type Daemon, eventually } from '../../support/program/daemon.js';
import { Gateway } from '../../support/program/gateway.js';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

async function expectHealthy(daemon: Daemon): Promise<void> {
  expect(daemon.running).toBe(true);
  expect(await daemon.get('/livez')).toMatchObject({ status: 200 });
  expect(await daemon.get('/readyz')).toMatchObject({ status: 200 });
}

/** Returns the numbers of consecutive failures at which a failure was logged. */
const loggedFailures = (daemon: Daemon, stage: string) =>
  daemon
    .logged()
    .filter((line) => line.stage === stage && line.level !== 'info')
    .map((line) => line.failures);

async function gatewayTo(url: string): Promise<Gateway> {
  const gateway = await Gateway.to(url);
  setup.afterwards(() => gateway.close());
  return gateway;
}

test('waits when the service is unavailable at the start and later, and logs each outage once', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const gateway = await gatewayTo(service.url);
  service.deliver(5);
  const daemon = setup.daemon({
    ...setup.environment({ url: gateway.through(service.url) }, database),
    SCANFEED_REQUEST_TIMEOUT: '500ms',
  });
  await daemon.failsRepeatedly('feed', 4);
  await expectHealthy(daemon);
  expect(await daemon.status()).toMatchObject({ role: 'leader', caughtUp: false, dataCompleteAsOf: null });
  expect(await daemon.metric('scanfeed_lag_seconds')).toBe(Number.POSITIVE_INFINITY);
  expect(loggedFailures(daemon, 'feed')).toEqual([1]);
  expect(daemon.logged('failed, retrying')[0]).toMatchObject({
    stage: 'feed',
    kind: 'connection',
    error: { message: expect.stringContaining('ECONNREFUSED') },
  });

  await gateway.open();
  await daemon.catchesUp();
  expect(daemon.logged('recovered')).toMatchObject([
    { stage: 'feed', failures: expect.any(Number), seconds: expect.any(Number) },
  ]);

  const noted = () =>
    database.query('SELECT stage, kind, ended_at IS NULL AS open FROM scanfeed.recent_errors ORDER BY since');
  await eventually(noted).toEqual([{ stage: 'feed', kind: 'connection', open: false }]);

  await gateway.close();
  await daemon.reaches({ caughtUp: false });
  await daemon.failsRepeatedly('feed', 2);
  await eventually(async () => (await noted()).at(-1)).toMatchObject({ stage: 'feed', open: true });
  await expectHealthy(daemon);
  const { dataCompleteAsOf, lagSeconds } = await daemon.status();
  await eventually(async () => (await daemon.status()).lagSeconds).toBeGreaterThan((lagSeconds as number) + 0.2);
  expect(await daemon.status()).toMatchObject({ dataCompleteAsOf });

  service.deliver(5);
  await gateway.open();
  await daemon.catchesUp();
  await daemon.reaches({ runsWritten: 10 });
});

test('holds when the key is refused, quotes the service, and uses a new key in its file without a restart', async () => {
  const [refused, second] = [canary('refused-key'), canary('second-key')];
  setup.hide({ refused, second });
  const service = await setup.startService({
    apiKeys: [
      { key: setup.secrets.apiKey, organization: 'demo' },
      { key: second, organization: 'demo' },
    ],
  });
  const database = await setup.createDatabase();
  service.deliver(5);
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-key-'));
  setup.afterwards(() => rm(folder, { recursive: true }));
  const file = join(folder, 'key');
  await writeFile(file, `${refused}\n`);
  const { SCANFEED_API_KEY: _, ...env } = setup.environment(service, database);
  const daemon = setup.daemon({ ...env, SCANFEED_API_KEY_FILE: file });
  const held = await daemon.logs('holding: action required', { stage: 'feed', kind: 'http_401' });
  expect(held).toMatchObject({
    level: 'error',
    error: { message: expect.stringContaining('"API-Schlüssel fehlt oder ist ungültig."') },
  });
  await expectHealthy(daemon);

  await writeFile(file, `${setup.secrets.apiKey}\n`);
  await daemon.catchesUp();
  await daemon.reaches({ runsWritten: 5 });

  await writeFile(file, second);
  await service.requests.next(({ headers }) => headers.authorization === `Bearer ${second}`);
  await daemon.catchesUp();
  const statuses = service.asked.map(({ status }) => status);
  expect(statuses.lastIndexOf(401)).toBeLessThan(statuses.indexOf(200));
});

test('does not show the key when the service repeats it in its refusal', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const { apiKey } = setup.secrets;
  service.addFault({
    kind: 'status',
    status: 403,
    error: `Schlüssel ${apiKey} gesperrt`,
    headers: { 'x-key': apiKey },
  });
  const daemon = setup.daemon({ ...setup.environment(service, database), SCANFEED_LOG_LEVEL: 'trace' });
  await daemon.failsRepeatedly('feed', 1);
  expect((await daemon.status()).currentErrors[0]?.message).toContain('Schlüssel [redacted] gesperrt');
});

test('claims no freshness from the answers of a cache, and warns about it', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const cache = await startCachingProxy(service.url);
  setup.afterwards(() => cache.close());
  service.set({ cacheControl: 'public, max-age=10' });
  service.deliver(5);
  const daemon = setup.daemon(setup.environment({ url: cache.url }, database));
  await daemon.catchesUp();
  service.deliver(1);
  const deliveredAt = Date.now();
  const warning = await daemon.logs('a cache served requests');
  expect(warning).toMatchObject({
    level: 'warn',
    cache: '1.1 test-cache',
    evidence: expect.stringMatching(/^Age: \d+$/),
  });
  const { runsWritten, dataCompleteAsOf } = await daemon.status();
  expect({ runsWritten, isCovered: Date.parse(dataCompleteAsOf as string) >= deliveredAt }).toEqual({
    runsWritten: 5,
    isCovered: false,
  });
  await daemon.reaches({ runsWritten: 6 });
});
