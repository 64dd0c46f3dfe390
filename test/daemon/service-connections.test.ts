import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { createServiceConnections } from '../../src/daemon/service-connections.js';
import { settingsWith } from '../support/settings.js';

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
