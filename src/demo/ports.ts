import { createServer } from 'node:net';

/** Listens for a moment; null when that is refused. */
function tryPort(port: number, host = '127.0.0.1'): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : null));
    });
  });
}

export async function isPortFree(port: number, host?: string): Promise<boolean> {
  return (await tryPort(port, host)) !== null;
}

/** The preferred loopback port where it is free, else any free one. */
export async function findFreePort(preferred: number | null): Promise<number> {
  const port = (preferred === null ? null : await tryPort(preferred)) ?? (await tryPort(0));
  if (port === null) throw new Error('This machine has no free port on 127.0.0.1');
  return port;
}
