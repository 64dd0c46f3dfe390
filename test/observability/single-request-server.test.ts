import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import {
  createSingleRequestServer,
  type Request,
  textAnswer,
} from '../../src/observability/admin/single-request-server.js';
import { gate } from '../support/observed.js';

/** Limits of a connection (docs/decisions/0016). */
const [MAX_CONNECTIONS, MAX_AGE_MS, MAX_HEAD_BYTES] = [128, 10_000, 8_192];

const GET = 'GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n';

const undos: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of undos.splice(0).reverse()) await undo();
});

/** A server whose connections reach their maximum age when the test says so. */
async function start(body = 'ok') {
  const requests: Request[] = [];
  const aged = gate();
  const sleeps = new Set<number>();
  const clock = {
    ...systemClock,
    now: () => Date.UTC(2026, 0, 1),
    sleep: (ms: number, signal: AbortSignal) => {
      sleeps.add(ms);
      const closed = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      return Promise.race([aged.opened, closed]);
    },
  };
  const answer = async (request: Request) => {
    requests.push(request);
    return textAnswer(200, body);
  };
  const { server, closeConnections } = createSingleRequestServer(answer, clock);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  undos.push(async () => {
    const closed = once(server, 'close');
    server.close();
    closeConnections();
    await closed;
  });
  const { port } = server.address() as AddressInfo;
  const open = async (localAddress = '127.0.0.1') => {
    const accepted = once(server, 'connection');
    const socket = connect({ host: '127.0.0.1', port, localAddress });
    socket.on('error', () => {});
    undos.push(() => socket.destroy());
    const [[held]] = (await Promise.all([accepted, once(socket, 'connect')])) as [[Socket], unknown];
    return { socket, held };
  };
  const send = async (...parts: string[]) => {
    const { socket } = await open();
    let said = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    for (const part of parts) await new Promise((resolve) => socket.write(part, resolve));
    await once(socket, 'close');
    return said;
  };
  return { server, requests, aged, sleeps, open, send };
}

test('answers one request and closes the connection', async () => {
  const { send, requests } = await start();
  expect(await send(GET)).toBe(
    'HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\nconnection: close\r\n' +
      'content-type: text/plain; charset=utf-8\r\ncontent-length: 3\r\ncache-control: no-store\r\n' +
      'x-content-type-options: nosniff\r\nreferrer-policy: no-referrer\r\n\r\nok\n',
  );
  expect(requests).toMatchObject([{ method: 'GET', path: '/a', query: new URLSearchParams('b=c') }]);
});

test('answers once when requests are pipelined', async () => {
  const { send, requests } = await start();
  await send(GET.repeat(1_000));
  expect(requests).toHaveLength(1);
});

test('answers when a request arrives byte by byte', async () => {
  const { send, requests } = await start();
  expect(await send(...GET)).toContain('200 OK');
  expect(requests).toHaveLength(1);
});

test('answers without reading the body when a request has one', async () => {
  const { send, requests } = await start();
  expect(await send(`POST / HTTP/1.1\r\nContent-Length: ${2 ** 40}\r\n\r\nbody`)).toContain('200 OK');
  expect(requests).toMatchObject([{ method: 'POST' }]);
});

test.each([
  ['431', 'the address is too long', `GET /${'a'.repeat(MAX_HEAD_BYTES)}`],
  ['431', 'the headers are too long', `GET / HTTP/1.1\r\n${'a: b\r\n'.repeat(MAX_HEAD_BYTES / 6 + 1)}`],
  ['400', 'the first line is not of HTTP/1.1', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['400', 'it is a TLS handshake', '\x16\x03\x01\x02\x00'],
])('answers %s when %s', async (status, _, sent) => {
  const { send, requests } = await start();
  expect(await send(sent)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(requests).toEqual([]);
});

test.each([
  ['sends nothing', ''],
  ['does not end its request', 'GET / HTTP/1.1\r\n'],
  ['reads no answer', GET],
])('closes a connection at its maximum age when it %s', async (_, sent) => {
  const { open, aged, sleeps, requests } = await start('a'.repeat(64 * 1024 * 1024));
  const { socket, held } = await open();
  socket.pause();
  if (sent !== '') await new Promise((resolve) => socket.write(sent, resolve));
  if (sent === GET) await expect.poll(() => requests).toHaveLength(1);
  expect([...sleeps]).toEqual([MAX_AGE_MS]);
  expect(held.closed).toBe(false);
  const closed = once(held, 'close');
  aged.open();
  await closed;
});

test('closes the connection when a client leaves before its request ends', async () => {
  const { open, requests } = await start();
  const { socket, held } = await open();
  const closed = once(held, 'close');
  socket.end('GET / HTTP/1.1\r\n');
  await closed;
  expect(requests).toEqual([]);
});

test('closes the oldest connection of the address with the most when there are too many', async () => {
  const { open, server } = await start();
  const other = await open('127.0.0.2');
  const crowd = [];
  for (let count = 1; count < MAX_CONNECTIONS; count += 1) crowd.push(await open());
  const [oldest, second] = crowd;
  const newest = await open();
  expect([other, oldest, second, newest].map((one) => one?.held.destroyed)).toEqual([false, true, false, false]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(await new Promise((resolve) => server.getConnections((_, count) => resolve(count)))).toBe(MAX_CONNECTIONS);
});
