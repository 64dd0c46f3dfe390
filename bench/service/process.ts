/** The service of the measurements, in a process of its own: an emulator behind a recording of its history. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Emulator, startEmulator } from '../../src/emulator/index.js';
import type { FromService, ServiceConfig, ToService } from './protocol.js';
import { recordFeed } from './recording.js';

const config = JSON.parse(process.argv[2] ?? '') as ServiceConfig;
const tell = (message: FromService) => process.send?.(message);

const { latencyMs, history, seed, truncatedShare, newRunsPerSecond, organizations } = config;
const { slowOrganizations, slowLatencyMs } = config;
const apiKeys = Array.from({ length: organizations }, (_, index) => ({
  key: `key-of-${index}`,
  organization: `organization-${index}`,
}));
const slow = new Set(apiKeys.slice(0, slowOrganizations).map(({ key }) => `Bearer ${key}`));
const switches = { truncatedShare, testEnvironmentShare: 0 };
const emulator = await startEmulator({ history, seed, switches, apiKeys });
const pages = organizations === 1 ? await recordFeed(emulator) : new Map<string, Buffer>();
emulator.set({ newRunsPerSecond });

let log = { requests: 0, firstAt: 0, lastAt: 0 };

async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  log.lastAt = Date.now();
  if (log.requests++ === 0) log.firstAt = log.lastAt;
  const delayMs = slow.has(incoming.headers.authorization ?? '') ? slowLatencyMs : latencyMs;
  if (delayMs > 0) await sleep(delayMs);
  const page = pages.get(incoming.url ?? '');
  if (page === undefined) return forward(incoming, outgoing, emulator);
  outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': page.length });
  outgoing.end(page);
}

function forward(incoming: IncomingMessage, outgoing: ServerResponse, { port }: Emulator): void {
  const { url = '/', method = 'GET', headers } = incoming;
  const onward = request({ host: '127.0.0.1', port, path: url, method, headers }, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(outgoing);
  });
  onward.on('error', (error) => outgoing.destroy(error));
  incoming.pipe(onward);
}

const server = createServer((incoming, outgoing) => void answer(incoming, outgoing));
// As a service behind a load balancer: connections stay open between two polls.
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  const url = organizations === 1 || slow.size > 0 ? `http://127.0.0.1:${port}/v1` : emulator.url;
  tell({ address: { url, apiKey: emulator.apiKey, apiKeys: apiKeys.map(({ key }) => key) } });
});

process.on('message', (message: ToService) => {
  if (message !== 'log') return void emulator.set({ newRunsPerSecond: message });
  tell({ log });
  log = { requests: 0, firstAt: 0, lastAt: 0 };
});
process.once('disconnect', () => process.exit(0));
