import { expect, test } from 'vitest';
import { requireTool } from '../../support/deployment/tools.js';
import { useProgram } from '../../support/program/bench.js';
import { eventually } from '../../support/program/daemon.js';
import { startServiceManager } from '../../support/program/systemd.js';
import { unusedPort } from '../../support/unused-port.js';

const bench = useProgram();

async function startManager() {
  const manager = await startServiceManager();
  bench.afterwards(manager.close);
  return manager;
}

test('tells systemd that it is ready, alive and stopping', async (context) => {
  for (const tool of ['systemd-notify', 'python3']) requireTool(context, tool);
  const manager = await startManager();
  const service = await bench.startService();
  const database = await bench.createDatabase();
  const daemon = bench.daemon({
    ...bench.environment(service, database),
    NOTIFY_SOCKET: manager.socket,
    WATCHDOG_USEC: '200000',
  });
  await eventually(() => manager.received().length).toBeGreaterThan(3);
  expect(manager.received().slice(0, 3)).toEqual(['READY=1', 'WATCHDOG=1', 'WATCHDOG=1']);
  expect((await daemon.get('/readyz')).status).toBe(200);
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  expect(manager.received().at(-1)).toBe('STOPPING=1');
  expect(manager.received().filter((line) => line === 'READY=1')).toHaveLength(1);
  expect(daemon.logged('systemd could not be notified')).toEqual([]);
});

test('is not ready while the database is unreachable', async (context) => {
  for (const tool of ['systemd-notify', 'python3']) requireTool(context, tool);
  const manager = await startManager();
  const service = await bench.startService();
  const database = { url: `postgres://someone@127.0.0.1:${await unusedPort()}/app` };
  const daemon = bench.daemon({ ...bench.environment(service, database), NOTIFY_SOCKET: manager.socket });
  await daemon.logs('failed, retrying');
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  expect(manager.received()).toEqual(['STOPPING=1']);
});

test('a socket that nobody reads does not disturb the feed', async (context) => {
  requireTool(context, 'systemd-notify');
  const service = await bench.startService();
  const database = await bench.createDatabase();
  service.deliver(20);
  const env = bench.environment(service, database);
  const daemon = bench.daemon({ ...env, NOTIFY_SOCKET: '/nonexistent/notify', WATCHDOG_USEC: '100000' });
  await daemon.logs('systemd could not be notified', { level: 'warn' });
  await daemon.reaches({ caughtUp: true, runsWritten: 20 });
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
  expect(daemon.logged('systemd could not be notified')).toHaveLength(1);
});
