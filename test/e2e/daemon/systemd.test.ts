import { expect, test } from 'vitest';
import { requireTool } from '../../support/deployment/tools.js';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';
import { startServiceManager } from '../../support/program/systemd.js';

const setup = useProgram();

async function startManager() {
  const manager = await startServiceManager();
  setup.afterwards(manager.close);
  return manager;
}

test('tells systemd that it is ready, alive and stopping', async (context) => {
  for (const tool of ['systemd-notify', 'python3']) requireTool(context, tool);
  const manager = await startManager();
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const daemon = setup.daemon({
    ...setup.environment(service, database),
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
