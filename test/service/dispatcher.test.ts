import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type LookupFunction, type Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createDispatcher, type ProxySettings } from '../../src/service/http/dispatcher.js';
import { testCertificate } from '../support/certificate.js';
import { pageJson } from '../support/entries.js';
import { knowHost } from '../support/known-host.js';
import { reply } from '../support/scripted-service.js';
import { startSlowForwarder } from '../support/slow-handshake.js';
import { VirtualClock } from '../support/virtual-clock.js';
import { KEY, never, page, rejection, useService } from './harness.js';

const context = useService();

/** A proxy that tunnels (CONNECT), or answers that with another status. */
class TunnelProxy {
  readonly asked: { target: string; headers: Record<string, unknown> }[] = [];
  /** A number is the status of a refusal. */
  answer: 'tunnel' | number | 'silence' | 'end' | 'reset' = 'tunnel';
  connections = 0;
  readonly #server: Server = createServer();
  readonly #sockets = new Set<Socket>();
  #onHeld: (() => void) | null = null;
  release: () => void = () => {};

  async start(): Promise<string> {
    this.#server.on('connection', (socket) => {
      this.connections += 1;
      this.#sockets.add(socket.on('error', () => undefined));
    });
    this.#server.on('connect', (request, client: Socket) => {
      const target = request.url ?? '';
      this.asked.push({ target, headers: request.headers });
      if (this.answer === 'silence') return;
      if (this.#onHeld !== null) {
        this.#onHeld();
        this.#onHeld = null;
        this.release = () => this.#tunnel(target, client);
        return;
      }
      if (this.answer === 'end') return void client.end();
      if (this.answer === 'reset') return void client.destroy();
      if (typeof this.answer === 'number') return void client.end(`HTTP/1.1 ${this.answer} No\r\n\r\n`);
      this.#tunnel(target, client);
    });
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Lets the next CONNECT wait until `release`. Resolves when it has arrived. */
  hold(): Promise<void> {
    return new Promise((resolve) => {
      this.#onHeld = resolve;
    });
  }

  #tunnel(target: string, client: Socket): void {
    const [host = '', port] = target.split(':');
    const upstream = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    this.#sockets.add(upstream.on('error', () => undefined));
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe('a dispatcher with a proxy', () => {
  let proxy: TunnelProxy;
  let address: string;
  const dispatchers: Dispatcher[] = [];

  beforeEach(async () => {
    proxy = new TunnelProxy();
    address = await proxy.start();
  });
  afterEach(async () => {
    await Promise.all(dispatchers.splice(0).map((dispatcher) => dispatcher.destroy()));
    await proxy.stop();
  });

  function read(settings: ProxySettings, connectTimeoutMs?: number) {
    const dispatcher = createDispatcher({ proxy: settings, connectTimeoutMs });
    dispatchers.push(dispatcher);
    context.service.answer(reply(200, pageJson([])));
    return context.client({ dispatcher }).readPage(page, never);
  }

  it('sends requests through it, and neither the key to it nor its password to the service', async () => {
    await read({ httpProxy: `http://user:proxy-password@${address}` });
    const [tunnel] = proxy.asked;
    expect(tunnel?.target).toBe(`127.0.0.1:${context.service.port}`);
    expect(tunnel?.headers['proxy-authorization']).toBe(`Basic ${btoa('user:proxy-password')}`);
    expect(JSON.stringify(tunnel?.headers)).not.toContain(KEY);
    expect(context.service.last.headers).not.toHaveProperty('proxy-authorization');
    expect(context.service.last.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  it.each([
    ['user', 'user:'],
    ['user:', 'user:'],
    [':token', ':token'],
    ['100%:p%40ss', '100%:p@ss'],
  ])('logs in at the proxy as curl does with %s', async (given, sent) => {
    await read({ httpProxy: `http://${given}@${address}` });
    expect(proxy.asked[0]?.headers['proxy-authorization']).toBe(`Basic ${btoa(sent)}`);
  });

  it.each(['127.0.0.1', 'other.example,127.0.0.1', '127.0.0.0/8', '*'])(
    'reaches the service directly when NO_PROXY is %s',
    async (noProxy) => {
      await read({ httpProxy: `http://${address}`, noProxy });
      expect(proxy.asked).toEqual([]);
    },
  );

  it('uses the proxy for https only for https', async () => {
    await read({ httpsProxy: `http://${address}` });
    expect(proxy.asked).toEqual([]);
  });

  it('does not read the environment', async () => {
    process.env.HTTP_PROXY = 'http://127.0.0.1:1';
    process.env.HTTPS_PROXY = 'read and found to be no address';
    process.env.NO_PROXY = '127.0.0.1';
    try {
      await read({});
      await read({ httpsProxy: 'http://127.0.0.1:1' });
      await read({ httpProxy: `http://${address}` });
    } finally {
      delete process.env.HTTP_PROXY;
      delete process.env.HTTPS_PROXY;
      delete process.env.NO_PROXY;
    }
    expect(proxy.asked).toHaveLength(1);
  });

  it.each([
    [407, 'hold', 'check user and password in HTTPS_PROXY'],
    [403, 'hold', 'check its log and rules, or NO_PROXY'],
    [503, 'retry', 'check its log and rules, or NO_PROXY'],
  ])(
    'names the status of the proxy without its password when it refuses a tunnel with %i',
    async (status, action, remedy) => {
      proxy.answer = status;
      const error = await rejection(read({ httpProxy: `http://user:proxy-password@${address}` }));
      expect(error).toMatchObject({ kind: 'proxy', action, status: undefined });
      expect((error as Error).message).toBe(
        `the proxy ${address} refused to connect to the service: it returned ${status}; ${remedy}`,
      );
      expect(context.service.requests).toEqual([]);
      proxy.answer = 'tunnel';
      await read({ httpProxy: `http://user:proxy-password@${address}` });
    },
  );

  it.each(['end', 'reset'] as const)(
    'does not retry at once when the proxy closes the connection without an answer (%s)',
    async (answer) => {
      proxy.answer = answer;
      const settings = { httpProxy: `http://user:proxy-password@${address}` };
      const error = await rejection(read(settings));
      expect(error).toMatchObject({ kind: 'connection', action: 'retry', code: 'PROXY_CLOSED' });
      expect((error as Error).message).not.toContain('proxy-password');
      expect(proxy.connections).toBe(1);
      proxy.answer = 'tunnel';
      await read(settings);
      expect(proxy.connections).toBe(2);
    },
  );

  it('follows a proxy that changes within two minutes', async () => {
    const clock = new VirtualClock();
    const route = { proxy: { httpProxy: `http://user:first@${address}` } };
    const dispatcher = createDispatcher({ ...route, clock, readAgain: async () => ({ ...route }) });
    dispatchers.push(dispatcher);
    const client = context.client({ dispatcher });
    route.proxy = { httpProxy: `http://user:second@${address}` };
    for (const _ of ['before', 'after']) {
      context.service.answer(reply(200, pageJson([])));
      await client.readPage(page, never);
      await clock.advance(60_000);
    }
    const logins = proxy.asked.map(({ headers }) => headers['proxy-authorization']);
    expect(logins).toEqual([`Basic ${btoa('user:first')}`, `Basic ${btoa('user:second')}`]);
  });

  it('opens another tunnel for a request that still waits when connections are replaced', async () => {
    const clock = new VirtualClock();
    const dispatcher = createDispatcher({ proxy: { httpProxy: `http://${address}` }, connections: 1, clock });
    dispatchers.push(dispatcher);
    const client = context.client({ dispatcher });
    let first: ServerResponse | undefined;
    context.service.answer((response) => {
      first = response;
    });
    const reads = [client.readPage(page, never), client.readPage(page, never)];
    await context.service.arrived(1);
    await clock.advance(60_000);
    context.service.answer(reply(200, pageJson([])), reply(200, pageJson([])));
    await client.readPage(page, never);
    first?.writeHead(200, { 'content-type': 'application/json', connection: 'close' }).end(pageJson([]));
    expect(await Promise.all(reads)).toHaveLength(2);
    expect(context.service.requests.map(({ connection }) => connection)).toEqual([1, 2, 3]);
  });

  it('completes a tunnel that is being opened when connections are replaced, after another one was refused', async () => {
    const clock = new VirtualClock();
    const dispatcher = createDispatcher({ proxy: { httpProxy: `http://${address}` }, connections: 2, clock });
    dispatchers.push(dispatcher);
    const client = context.client({ dispatcher });
    const held = proxy.hold();
    const opening = client.readPage(page, never).catch((error: unknown) => error);
    await held;
    proxy.answer = 503;
    expect(await rejection(client.readPage(page, never))).toMatchObject({ kind: 'proxy' });
    proxy.answer = 'tunnel';
    await clock.advance(60_000);
    context.service.answer(reply(200, pageJson([])), reply(200, pageJson([])));
    await client.readPage(page, never);
    proxy.release();
    expect(await opening).toMatchObject({ items: [] });
  });

  it('closes the connection after the connect timeout when the proxy never answers', async () => {
    proxy.answer = 'silence';
    const error = await rejection(read({ httpProxy: `http://${address}` }, 50));
    expect(error).toMatchObject({ kind: 'connection', code: 'UND_ERR_CONNECT_TIMEOUT' });
    expect((error as Error).message).toContain('(UND_ERR_CONNECT_TIMEOUT after 0.05 s)');
  });
});

describe('a dispatcher', () => {
  let dispatcher: Dispatcher;
  afterEach(() => dispatcher.destroy());

  it('opens at most the allowed number of connections', async () => {
    dispatcher = createDispatcher({ connections: 2 });
    const client = context.client({ dispatcher });
    const answers = Array.from({ length: 6 }, () => reply(200, pageJson([])));
    context.service.answer(...answers);
    await Promise.all(answers.map(() => client.readPage(page, never)));
    expect(context.service.connections).toBe(2);
  });

  it('opens new connections after a minute, and ends the old one after its download', async () => {
    const clock = new VirtualClock();
    dispatcher = createDispatcher({ connections: 1, clock });
    const client = context.client({ dispatcher });
    const body = pageJson([]);
    let download: { response: ServerResponse; socket: Socket } | undefined;
    context.service.answer((response, socket) => {
      download = { response, socket };
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
      response.write(body.slice(0, 5));
    });
    const downloaded = client.readPage(page, never);
    await context.service.arrived(1);
    await clock.advance(60_000);
    for (const _ of [1, 2]) {
      context.service.answer(reply(200, body));
      await client.readPage(page, never);
    }
    expect(context.service.requests.map(({ connection }) => connection)).toEqual([1, 2, 2]);
    const ended = download && once(download.socket, 'close');
    download?.response.end(body.slice(5));
    expect(await downloaded).toMatchObject({ items: [] });
    await ended;
    await clock.advance(59_999);
    context.service.answer(reply(200, body), reply(200, body));
    await client.readPage(page, never);
    await clock.advance(1);
    await client.readPage(page, never);
    expect(context.service.requests.map(({ connection }) => connection)).toEqual([1, 2, 2, 2, 3]);
  });

  it('ends the requests of replaced connections too when it is destroyed', async () => {
    const clock = new VirtualClock();
    dispatcher = createDispatcher({ connections: 1, clock });
    const client = context.client({ dispatcher });
    let ended: Promise<unknown> | undefined;
    context.service.answer((_, socket) => {
      ended = once(socket, 'close');
    });
    const waiting = rejection(client.readPage(page, never));
    await context.service.arrived(1);
    await clock.advance(60_000);
    context.service.answer(reply(200, pageJson([])));
    await client.readPage(page, never);
    await dispatcher.destroy();
    expect(await waiting).toMatchObject({ kind: 'closed' });
    await ended;
  });

  it('follows a name that moves within a minute', async () => {
    const clock = new VirtualClock();
    let address = '127.0.0.1';
    const moved = createServer((_, response) => response.end(pageJson([]))).listen(context.service.port, '127.0.0.2');
    await once(moved, 'listening');
    const arrived = once(moved, 'request');
    const lookup: LookupFunction = (_name, _options, callback) => callback(null, [{ address, family: 4 }]);
    dispatcher = createDispatcher({ connections: 1, clock, lookup });
    const client = context.client({
      dispatcher,
      allowHttp: true,
      baseUrl: `http://recognition.test:${context.service.port}/v1`,
    });
    for (const answered of [1, 2]) {
      context.service.answer(reply(200, pageJson([])));
      await client.readPage(page, never);
      expect(context.service.requests).toHaveLength(answered);
      address = '127.0.0.2';
    }
    await clock.advance(60_000);
    await client.readPage(page, never);
    await arrived;
    moved.closeAllConnections();
    moved.close();
  });

  it('connects to the address that the process knows when the name cannot be looked up', async () => {
    await knowHost('recognition.test');
    dispatcher = createDispatcher();
    const baseUrl = `http://recognition.test:${context.service.port}/v1`;
    const client = context.client({ dispatcher, allowHttp: true, baseUrl });
    context.service.answer(reply(200, pageJson([])));
    expect(await client.readPage(page, never)).toMatchObject({ items: [] });
  });

  it('follows certificates that change within two minutes', async () => {
    const clock = new VirtualClock();
    const [old, renewed] = [testCertificate('127.0.0.1'), testCertificate('127.0.0.1')];
    const server = createSecureServer(old, (_, response) => response.end(pageJson([]))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    let ca = old.cert;
    dispatcher = createDispatcher({ ca, clock, readAgain: async () => ({ ca }) });
    const { port } = server.address() as AddressInfo;
    const client = context.client({ dispatcher, baseUrl: `https://127.0.0.1:${port}/v1` });
    await client.readPage(page, never);
    server.setSecureContext(renewed);
    ca = renewed.cert;
    await clock.advance(60_000);
    expect(await rejection(client.readPage(page, never))).toMatchObject({ kind: 'certificate' });
    await clock.advance(60_000);
    expect(await client.readPage(page, never)).toMatchObject({ items: [] });
    server.closeAllConnections();
    server.close();
  });

  it('connects to a name with two addresses when the handshake takes a second', async () => {
    const slow = await startSlowForwarder(context.service.port);
    await slow.slowDown();
    context.service.answer(reply(200, pageJson([])));
    dispatcher = createDispatcher({ lookup: slow.lookup });
    const client = context.client({ dispatcher, allowHttp: true, baseUrl: `http://recognition.test:${slow.port}/v1` });
    expect(await client.readPage(page, never)).toMatchObject({ items: [] });
    await slow.stop();
  });

  it('names the time for connecting when a TLS handshake never ends', async () => {
    const silent = createTcpServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    dispatcher = createDispatcher({ connectTimeoutMs: 50 });
    const origin = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const error = await rejection(context.client({ dispatcher, baseUrl: `${origin}/v1` }).readPage(page, never));
    expect(error).toMatchObject({ kind: 'connection', action: 'retry' });
    expect((error as Error).message).toContain(`no response from ${origin} (UND_ERR_CONNECT_TIMEOUT after 0.05 s)`);
    silent.close();
  });
});
