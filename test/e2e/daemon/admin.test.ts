import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';
import { unusedPort } from '../../support/unused-port.js';

const setup = useProgram();

test('stores runs when the admin port is in use, and listens once it is free', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.deliver(5);
  const port = await unusedPort();
  const occupant = createServer();
  await new Promise<void>((resolve) => occupant.listen(port, '127.0.0.1', () => resolve()));
  const daemon = setup.daemon({ ...setup.environment(service, database), SCANFEED_ADMIN_PORT: String(port) });
  expect(await daemon.logs('admin address unavailable, retrying')).toMatchObject({
    level: 'error',
    port,
    error: { code: 'EADDRINUSE' },
  });
  await daemon.logs('started leading the feed');
  await eventually(() => database.query('SELECT count(*)::int AS runs FROM scanfeed.runs')).toEqual([{ runs: 5 }]);

  await new Promise((resolve) => occupant.close(resolve));
  expect(await daemon.adminUrl()).toBe(`http://127.0.0.1:${port}`);
  await daemon.catchesUp();
});
