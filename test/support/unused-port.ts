import { isPortFree } from '../../src/demo/ports.js';

/** Range of ports outside that of ephemeral ports, so that no other program gets one by chance while it is closed. */
const PORTS = { from: 20_000, to: 30_000 };

/** Returns a port on which nothing listens, for a server that stops and starts again on it. */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = PORTS.from + Math.floor(Math.random() * (PORTS.to - PORTS.from));
    if (await isPortFree(port)) return port;
  }
}
