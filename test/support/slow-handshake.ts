import { once } from 'node:events';
import { connect, type LookupFunction, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';

/** Time after which the forwarder accepts connections again, milliseconds. Longer than Node tries an address by default. */
const BUSY_MS = 400;

/** Forwards connections. While its thread sleeps, the operating system drops what does not fit into its queue. */
const FORWARDER = `
const { connect, createServer } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
const server = createServer((socket) => {
  const onward = connect(workerData.port, '127.0.0.1');
  socket.on('error', () => onward.destroy()).pipe(onward);
  onward.on('error', () => socket.destroy()).pipe(socket);
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => parentPort.postMessage(server.address().port));
parentPort.on('message', () => {
  parentPort.postMessage('asleep');
  Atomics.wait(workerData.gate, 0, 0);
});
`;

/**
 * Starts a forwarder to a server on 127.0.0.1. `slowDown` makes the next handshake take about a second, since its first packet is
 * dropped. `addresses` are those of a host where nothing listens at the second one.
 */
export async function startSlowForwarder(serverPort: number) {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(FORWARDER, { eval: true, workerData: { port: serverPort, gate } });
  const [port] = (await once(worker, 'message')) as [number];
  const queued: Socket[] = [];
  const slowDown = async () => {
    Atomics.store(gate, 0, 0);
    worker.postMessage('sleep');
    await once(worker, 'message');
    for (let n = 0; n < 2; n += 1) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      queued.push(socket);
      await once(socket, 'connect');
    }
    setTimeout(() => {
      Atomics.store(gate, 0, 1);
      Atomics.notify(gate, 0);
    }, BUSY_MS);
  };
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ];
  const lookup: LookupFunction = (_name, _options, callback) => callback(null, addresses);
  const stop = async () => {
    for (const socket of queued) socket.destroy();
    await worker.terminate();
  };
  return { port, addresses, lookup, slowDown, stop };
}
