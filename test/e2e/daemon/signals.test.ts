import { expect, test } from 'vitest';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

test('SIGUSR2 switches the log to debug and back, and SIGHUP is ignored, while the feed continues', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const daemon = setup.daemon(setup.environment(service, database));
  await daemon.catchesUp();
  service.deliver(3);
  await daemon.reaches({ runsWritten: 3 });
  expect(daemon.logged('committed')).toEqual([]);

  daemon.signal('SIGUSR2');
  await daemon.logs('log level changed', { logLevel: 'debug' });
  service.deliver(4);
  await daemon.logs('committed', { level: 'debug', inserted: 4 });

  daemon.signal('SIGUSR2');
  await daemon.logs('log level changed', { logLevel: 'info' });
  const before = daemon.logged('committed').length;
  daemon.signal('SIGHUP');
  await daemon.logs('SIGHUP ignored');
  service.deliver(5);
  await daemon.reaches({ runsWritten: 12 });
  expect(daemon.logged('committed')).toHaveLength(before);
  expect(await daemon.stop()).toEqual({ code: 0, signal: null });
});
