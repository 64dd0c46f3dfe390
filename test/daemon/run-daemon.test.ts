import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { onlyFeed, runDaemon } from '../../src/daemon/run-daemon.js';
import type { ProcessLogger } from '../../src/observability/log/logger.js';
import { recordingLogger } from '../support/observed.js';
import { settingsWith } from '../support/settings.js';

/** A port that refuses connections: nothing listens on port 1. */
const NOWHERE = 'postgres://daemon:pass-of-the-test@127.0.0.1:1/app';

const SETTINGS = settingsWith({
  DATABASE_URL: NOWHERE,
  SCANFEED_ADMIN_HOST: '127.0.0.1',
  SCANFEED_ADMIN_PORT: '0',
});

test('warns of feeds of a file when they poll more often than allowed', async () => {
  const feeds = ['one', 'two'].map((name) => ({
    ...SETTINGS,
    feed: { ...SETTINGS.feed, name },
    service: { ...SETTINGS.service, requestsPerSecond: 0.1 },
  }));
  const file = { feeds, invalid: [], invalidKeyFiles: [], text: '' };
  const changes = { readText: async () => '', read: async () => file, versionOf: async () => '' };
  const { logger, until } = recordingLogger();
  const stop = new AbortController();
  const context = { logger, tracer: null, clock: systemClock };
  const { stopped } = runDaemon(SETTINGS, { file, changes }, context, stop.signal);
  expect(await until('poll rate exceeds request limit')).toBeUndefined();
  stop.abort();
  await stopped;
});

test.each([
  ['is ready when the file lists no feeds', [], '200'],
  ['is not ready when all entries of the file are invalid', [{ name: 'one', mistakes: [] }], '503'],
])('%s', async (_, invalid, expected) => {
  const file = { feeds: [], invalid, invalidKeyFiles: [], text: '' };
  const changes = { readText: async () => '', read: async () => file, versionOf: async () => '' };
  const stop = new AbortController();
  const context = { logger: recordingLogger().logger, tracer: null, clock: systemClock };
  const { admin, stopped } = runDaemon(SETTINGS, { file, changes }, context, stop.signal);
  await admin.settled;
  const { status } = await fetch(`http://127.0.0.1:${admin.address()?.port}/readyz`);
  expect(String(status)).toBe(expected);
  stop.abort();
  await stopped;
});

test('rejects with the error and closes everything when the engine has a bug', async () => {
  const { logger, until } = recordingLogger();
  const served = until('admin server is listening');
  const bug = new TypeError('a bug');
  const broken: ProcessLogger = {
    ...logger,
    with: () => broken,
    warn: () => {
      throw bug;
    },
  };
  const context = { logger: broken, tracer: null, clock: systemClock };
  const { admin, stopped } = runDaemon(SETTINGS, onlyFeed(SETTINGS), context, new AbortController().signal);
  stopped.catch(() => {});
  await served;
  await expect(stopped).rejects.toBe(bug);
  expect(admin.address()).toBeNull();
});
