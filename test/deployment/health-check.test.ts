import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { runTool } from '../support/deployment/tools.js';
import { readText } from '../support/documents.js';

const [, , script = ''] = JSON.parse(/^ {2}CMD (\[.*\])$/m.exec(readText('Dockerfile'))?.[1] ?? '[]') as string[];

/** Runs the health check of the image against a server that answers with this status, with a proxy that does not answer. */
async function check(status: number): Promise<number | null> {
  const server = createServer(({ url }, response) => response.writeHead(url === '/livez' ? status : 404).end());
  await new Promise<void>((resolve) => server.listen(0, '::', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const proxy = ['NODE_USE_ENV_PROXY=1', 'HTTP_PROXY=http://127.0.0.1:1', 'http_proxy=http://127.0.0.1:1'];
  const args = [`SCANFEED_ADMIN_PORT=${port}`, ...proxy, process.execPath, '--eval', script];
  return (await runTool('env', args)).status;
}

test('the health check of the image asks the daemon without a proxy', async () => {
  expect(await check(200)).toBe(0);
  expect(await check(503)).toBe(1);
});
