import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, interceptors } from 'undici';

/** A shared cache (RFC 9111) in front of a service. Like Varnish and nginx by default, it does not obey the client's `Cache-Control`. */
export async function startCachingProxy(target: string): Promise<{ readonly url: string; close(): Promise<void> }> {
  const { origin, pathname } = new URL(target);
  const agent = new Agent().compose(interceptors.cache({ type: 'shared' }));
  const server = createServer(async ({ url: path = '/', headers: { authorization = '' } }, response) => {
    try {
      const { statusCode, headers, body } = await agent.request({
        ...{ origin, path, method: 'GET' },
        headers: { authorization, accept: 'application/json' },
      });
      response.writeHead(statusCode, { ...headers, via: '1.1 test-cache' });
      for await (const chunk of body) response.write(chunk);
      response.end();
    } catch {
      response.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await agent.destroy();
    },
  };
}
