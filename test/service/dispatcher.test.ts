import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createDispatcher, type ProxySettings } from '../../src/service/http/dispatcher.js';
import { pageJson } from '../support/entries.js';
import { reply } from '../support/scripted-service.js';
import { KEY, never, page, rejection, useService } from './harness.js';

const context = useService();

/** A proxy that tunnels (CONNECT), or answers that with another status. */
class TunnelProxy {
  readonly asked: { target: string; headers: Record<string, unknown> }[] = [];
  answer: 'tunnel' | 'refuse' | 'silence' | 'end' | 'reset' = 'tunnel';
  connections = 0;
  readonly #server: Server = createServer();
  readonly #sockets = new Set<Socket>();

  async start(): Promise<string> {
    this.#server.on('connection', (socket) => {
      this.connections += 1;
      this.#sockets.add(socket.on('error', () => undefined));
    });
    this.#server.on('connect', (request, client: Socket) => {
      const target = request.url ?? '';
      this.asked.push({ target, headers: request.headers });
      if (this.answer === 'silence') return;
      if (this.answer === 'end') return void client.end();
      if (this.answer === 'reset') return void client.destroy();
      if (this.answer === 'refuse') return void client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      const [host = '', port] = target.split(':');
      const upstream = connect(Number(port), host, () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n');
        client.pipe(upstream).pipe(client);
      });
      this.#sockets.add(upstream.on('error', () => undefined));
    });
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
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

  it.each(['127.0.0.1', 'other.example,127.0.0.1', '*'])(
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

  it('fails with a temporary error without the password when the tunnel is refused', async () => {
    proxy.answer = 'refuse';
    const error = await rejection(read({ httpProxy: `http://user:proxy-password@${address}` }));
    expect(error).toMatchObject({ kind: 'connection', action: 'retry' });
    expect((error as Error).message).not.toContain('proxy-password');
    expect(context.service.requests).toEqual([]);
  });

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

  it('closes the connection after the connect timeout when the proxy never answers', async () => {
    proxy.answer = 'silence';
    expect(await rejection(read({ httpProxy: `http://${address}` }, 50))).toMatchObject({ kind: 'timeout' });
  });
});

describe('a dispatcher', () => {
  it('opens at most the allowed number of connections', async () => {
    const dispatcher = createDispatcher({ connections: 2 });
    const client = context.client({ dispatcher });
    const answers = Array.from({ length: 6 }, () => reply(200, pageJson([])));
    context.service.answer(...answers);
    await Promise.all(answers.map(() => client.readPage(page, never)));
    expect(context.service.connections).toBe(2);
    await dispatcher.destroy();
  });
});
