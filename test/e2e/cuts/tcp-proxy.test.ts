import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { atMessage, type Message, messageReader } from '../../support/postgres-messages.js';
import { afterBytes, afterText, TcpProxy } from '../../support/tcp-proxy.js';

let server: Server;
let proxy: TcpProxy;
let sockets: Socket[];

beforeEach(async () => {
  sockets = [];
  // Echoes what it receives, and sends `goodbye` after the client's end.
  server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket.on('error', () => {}));
    socket.on('data', (bytes) => socket.write(bytes)).on('end', () => socket.end('goodbye'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy = await TcpProxy.to({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
});
afterEach(async () => {
  await proxy.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

/** Connects a client. `ended` resolves with `end` or the code of the error. */
function client() {
  const socket = connect({ host: '127.0.0.1', port: proxy.port, allowHalfOpen: true });
  sockets.push(socket);
  const ended = new Promise<string>((resolve) => {
    socket.once('end', () => resolve('end')).once('error', (error: NodeJS.ErrnoException) => resolve(`${error.code}`));
  });
  const chunks: Buffer[] = [];
  socket.on('data', (bytes) => chunks.push(bytes));
  const received = () => Buffer.concat(chunks).toString();
  const receives = (text: string) => expect.poll(received).toBe(text);
  return { socket, ended, chunks, received, receives };
}

describe('a proxy without faults', () => {
  it('forwards bytes and the end of each direction, and counts connections, when two clients connect', async () => {
    const [one, two] = [client(), client()];
    one.socket.write('one');
    two.socket.write('two');
    await Promise.all([one.receives('one'), two.receives('two')]);
    expect(proxy.connections).toHaveLength(2);
    one.socket.end();
    expect(await one.ended).toBe('end');
    expect(one.received()).toBe('onegoodbye');
    expect(proxy.connections.map(({ passed }) => passed.client)).toEqual([3, 3]);
  });

  it('forwards all bytes when they exceed the buffers', async () => {
    const { socket, received } = client();
    const text = 'x'.repeat(5_000_000);
    socket.end(text);
    await expect.poll(() => received().length).toBe(text.length + 'goodbye'.length);
  });

  it('connects to another server when its target changes', async () => {
    const other = createServer((socket) => socket.end('other'));
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    proxy.target = { host: '127.0.0.1', port: (other.address() as AddressInfo).port };
    const { ended, received } = client();
    await ended;
    expect(received()).toBe('other');
    other.close();
  });
});

describe('a proxy with faults', () => {
  it('delays bytes when it has latency', async () => {
    proxy.set({ latencyMs: 60 });
    const { socket, receives } = client();
    const before = performance.now();
    socket.write('slow');
    await receives('slow');
    expect(performance.now() - before).toBeGreaterThanOrEqual(2 * 59);
  });

  it('forwards small pieces when it drips', async () => {
    proxy.set({ drip: { bytes: 1, everyMs: 5 } });
    const { socket, receives, chunks } = client();
    socket.write('drip');
    await receives('drip');
    expect(chunks.map(String)).toEqual(['d', 'r', 'i', 'p']);
  });

  it('loses the bytes of a connection permanently when it was a black hole, and serves new connections', async () => {
    const lost = client();
    lost.socket.write('before');
    await lost.receives('before');
    proxy.set({ blackhole: true });
    lost.socket.write('lost');
    await expect.poll(() => proxy.connections[0]?.lost.client).toBe(4);
    proxy.heal();
    lost.socket.write('after');
    await expect.poll(() => proxy.connections[0]?.lost.client).toBe(9);
    const other = client();
    other.socket.write('healed');
    await other.receives('healed');
    expect(lost.received()).toBe('before');
    expect(lost.socket.readableEnded).toBe(false);
    lost.socket.end();
    await proxy.connections[0]?.closed;
  });
});

describe('a cut', () => {
  it.each([
    ['reset', 'ECONNRESET'],
    ['end', 'end'],
  ] as const)('is visible to both sides when it is a %s', async (cutKind, seen) => {
    const { socket, ended, receives } = client();
    socket.write('hello');
    await receives('hello');
    const atServer = new Promise((resolve) => {
      sockets.find((other) => other.localPort === proxy.target.port)?.once(seen === 'end' ? 'end' : 'error', resolve);
    });
    proxy.cutAll(cutKind);
    expect(await ended).toBe(seen);
    await atServer;
  });

  it('forwards only the bytes before it, and happens once, when it follows a number of bytes', async () => {
    const cut = proxy.cutOnce(() => afterBytes('client', 5), 'end');
    const first = client();
    first.socket.write('abc');
    await first.receives('abc');
    first.socket.write('defg');
    await first.ended;
    expect(await cut).toBe(proxy.connections[0]);
    expect(proxy.connections[0]).toMatchObject({ passed: { client: 5 }, lost: { client: 2 } });
    const second = client();
    second.socket.write('longer than that');
    await second.receives('longer than that');
  });

  it('happens after the text when the text is split across chunks', async () => {
    const cut = proxy.cutOnce(() => afterText('server', 'needle'), 'end');
    const { socket, ended, received, receives } = client();
    socket.write('hay nee');
    await receives('hay nee');
    socket.write('dle hay');
    await cut;
    expect(await ended).toBe('end');
    expect(received()).toBe('hay needle');
  });

  it('closes nothing and forwards nothing when it is a silence', async () => {
    const cut = proxy.cutOnce(() => afterBytes('client', 2), 'silence');
    const { socket } = client();
    socket.write('abcd');
    const connection = await cut;
    socket.write('efgh');
    await expect.poll(() => connection.lost.client).toBe(6);
    expect(socket.readableEnded).toBe(false);
    expect(connection.passed.client).toBe(2);
  });

  it('closes only the direction of the answer when it is a half-close', async () => {
    const cut = proxy.cutOnce(() => afterBytes('server', 3), 'half-close');
    const { socket, ended, received } = client();
    socket.write('answer');
    expect(await ended).toBe('end');
    expect(received()).toBe('ans');
    socket.write('more');
    await expect.poll(() => proxy.connections[0]?.passed.client).toBe(10);
    expect((await cut).passed.server).toBe(3);
  });

  it('leaves the other direction open when one is closed', async () => {
    const { socket, receives } = client();
    socket.write('question');
    await receives('question');
    proxy.connections[0]?.halfClose('client');
    await receives('questiongoodbye');
    expect(socket.writable).toBe(true);
  });
});

describe("PostgreSQL's messages", () => {
  const startup = Buffer.from([0, 0, 0, 8, 0, 3, 0, 0]);
  const message = (type: string, body: string) => {
    const head = Buffer.alloc(5, type);
    head.writeInt32BE(4 + body.length, 1);
    return Buffer.concat([head, Buffer.from(body)]);
  };
  const sent = Buffer.concat([startup, message('P', 'select'), message('S', ''), message('Q', 'x'.repeat(300))]);
  const starts = (found: readonly Message[]) => found.map(({ type, start, end }) => [type, start, end]);
  const expected = [
    ['startup', 0, 8],
    ['P', 8, 19],
    ['S', 19, 24],
    ['Q', 24, 329],
  ];

  it.each([1, 2, 3, 7, 400])('are found when they arrive in chunks of %i bytes', (size) => {
    const read = messageReader();
    const found: Message[] = [];
    for (let at = 0; at < sent.length; at += size) found.push(...read('client', sent.subarray(at, at + size)));
    expect(starts(found)).toEqual(expected);
  });

  it.each([
    [0, 'whole', 0],
    [2, 'whole', 19],
    [2, 'half', 13],
    [4, 'half', 176],
    [4, 'whole', 329],
  ] as const)(
    'are cut at the same byte in chunks of any size when message %i is reached (%s: byte %i)',
    (n, part, at) => {
      for (const size of [1, 3, 50, 400]) {
        const cutAt = atMessage(n, part, () => {});
        let passed = 0;
        for (let start = 0; start < sent.length; start += size) {
          const cut = cutAt('client', sent.subarray(start, start + size));
          passed += cut ?? Math.min(size, sent.length - start);
          if (cut !== null) break;
        }
        expect(passed).toBe(at);
      }
    },
  );
});
