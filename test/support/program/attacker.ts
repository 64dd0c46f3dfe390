import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Attack {
  readonly connections: number;
  readonly perSecond: number;
  /** Sent on each connection. No response is ever read. */
  readonly request: string;
}

/** Pause between two batches of connections, milliseconds. */
const BATCH_MS = 5;
/** Connections kept open; older ones are reset. Stays below the descriptors that a test may have. */
const HELD = 10_000;

/**
 * Opens connections at a steady rate and keeps them open without reading from them.
 * @returns closes all of them
 */
export async function attack(url: string, { connections, perSecond, request }: Attack): Promise<() => void> {
  const { hostname: host, port } = new URL(url);
  const held: Socket[] = [];
  const startedAt = performance.now();
  for (let opened = 0; opened < connections; await sleep(BATCH_MS)) {
    const due = Math.min(connections, Math.ceil(((performance.now() - startedAt + BATCH_MS) * perSecond) / 1000));
    // A machine that is behind does not catch up in one burst.
    for (const end = Math.min(due, opened + perSecond / 10); opened < end; opened += 1) {
      const socket = connect({ host, port: Number(port) });
      socket.on('error', () => {}).pause();
      if (request !== '') socket.write(request);
      held.push(socket);
      if (held.length > HELD) held.shift()?.destroy();
    }
  }
  return () => {
    for (const socket of held.splice(0)) socket.destroy();
  };
}
