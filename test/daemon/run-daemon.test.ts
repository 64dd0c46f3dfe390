import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { runDaemon } from '../../src/daemon/run-daemon.js';
import { recordingLogger } from '../support/observed.js';
import { settingsWith } from '../support/settings.js';

/** A port that refuses connections: nothing listens on port 1. */
const NOWHERE = 'postgres://daemon:pass-of-the-test@127.0.0.1:1/app';

test('rejects with the error and closes everything when the engine has a bug', async () => {
  const settings = settingsWith({
    DATABASE_URL: NOWHERE,
    SCANFEED_ADMIN_HOST: '127.0.0.1',
    SCANFEED_ADMIN_PORT: '0',
  });
  const { logger, until } = recordingLogger();
  const served = until('admin server is listening');
  const bug = new TypeError('a bug');
  const broken = {
    ...logger,
    warn: () => {
      throw bug;
    },
  };
  const context = { logger: broken, tracer: null, clock: systemClock };
  const { admin, stopped } = runDaemon(settings, { single: settings }, context, new AbortController().signal);
  stopped.catch(() => {});
  await served;
  await expect(stopped).rejects.toBe(bug);
  expect(admin.address()).toBeNull();
});
