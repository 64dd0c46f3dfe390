import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { createServiceConnections } from '../../src/daemon/service-connections.js';
import { settingsWith } from '../support/settings.js';
import { VirtualClock } from '../support/virtual-clock.js';

it('sends no request of a feed for a single run before the time that the service asked for', async () => {
  let requests = 0;
  const server = createServer((_, response) => {
    requests += 1;
    response.writeHead(429, { 'retry-after': '3600' }).end();
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const connections = createServiceConnections(1, systemClock);
  onTestFinished(connections.close);
  const { port } = server.address() as AddressInfo;
  const { service } = connections.open(settingsWith({ SCANFEED_BASE_URL: `http://127.0.0.1:${port}/v1` }).service);
  for (const scanId of ['a', 'b']) {
    const sent = service.readRun(scanId, { markdown: false }, new AbortController().signal);
    await expect(sent).rejects.toMatchObject({ status: 429 });
  }
  expect(requests).toBe(1);
});

it('notices when the file of the key changes', async () => {
  const clock = new VirtualClock();
  const contents = { '/key': 'first' };
  const connections = createServiceConnections(1, clock);
  onTestFinished(connections.close);
  const settings = settingsWith({ SCANFEED_API_KEY: undefined, SCANFEED_API_KEY_FILE: '/key' }, contents);
  const { service } = connections.open(settings.service);
  let changed = 0;
  void service.keyChanged?.(new AbortController().signal).then(() => (changed += 1));
  await clock.advance(60_000);
  expect(changed).toBe(0);
  contents['/key'] = 'second';
  await clock.advance(5_000);
  expect(changed).toBe(1);
});

it('expects no change of a key that is not in a file', () => {
  const connections = createServiceConnections(1, systemClock);
  onTestFinished(connections.close);
  expect(connections.open(settingsWith({}).service).service.keyChanged).toBeUndefined();
});
