import { once } from 'node:events';
import { connect, type LookupFunction, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';

/** Time after which the server accepts connections again, milliseconds. Longer than Node tries an address by default. */
const BUSY_MS = 400;

/** Accepts connections only once it is woken; until then the operating system drops what does not fit into its queue. */
const SERVER = `
const { createServer } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
const server = createServer((socket) => {
  socket.on('error', () => {}).once('data', () => socket.end(Buffer.from(workerData.answer)));
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort.postMessage(server.address().port);
  Atomics.wait(workerData.gate, 0, 0);
});
`;

/**
 * Starts a server on 127.0.0.1 whose next handshake takes about a second, since the first packet is dropped. `lookup` says that
 * its host also has an address where nothing listens.
 */
export async function startSlowServer(answer: Uint8Array) {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(SERVER, { eval: true, workerData: { answer, gate } });
  const [port] = (await once(worker, 'message')) as [number];
  const queued: Socket[] = [];
  for (let n = 0; n < 2; n += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    await once(socket, 'connect');
    queued.push(socket);
  }
  setTimeout(() => {
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
  }, BUSY_MS);
  const lookup: LookupFunction = (_name, _options, callback) =>
    callback(null, [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]);
  const stop = async () => {
    for (const socket of queued) socket.destroy();
    await worker.terminate();
  };
  return { port, lookup, stop };
}
