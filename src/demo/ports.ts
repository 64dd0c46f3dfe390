import { createServer } from 'node:net';
import { CommandFailure } from '../cli/context/exit.js';

/** Returns the port if this process can listen on it, otherwise null. */
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

/** Returns the preferred port if it is free, otherwise any free port. */
export async function findFreePort(preferred: number | null, host = '127.0.0.1'): Promise<number> {
  const port = (preferred === null ? null : await tryPort(preferred, host)) ?? (await tryPort(0, host));
  if (port === null) throw new CommandFailure(`no port on ${host} is free; end a program that listens there`);
  return port;
}
