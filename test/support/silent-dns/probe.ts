// Run in a network of its own, whose only DNS server is this process: it answers for live.test and is silent for other names.
// Prints how long each lookup of live.test took, milliseconds; null: it failed.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLookup } from '../../../src/core/host-lookup.js';

const SECONDS = 20;
const LIVE = Buffer.from('\x04live\x04test\0', 'latin1');

const server = createSocket('udp4').on('message', (query, { port, address }) => {
  const end = 12 + LIVE.length + 4;
  if (!query.subarray(12).toString('latin1').startsWith(LIVE.toString('latin1'))) return;
  const answer = Buffer.from(query.subarray(0, end));
  const isA = query.readUInt16BE(end - 4) === 1;
  answer.set([0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0], 2);
  const record = isA ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1] : [];
  server.send(Buffer.concat([answer, Buffer.from(record)]), port, address);
});
server.bind(53, '127.0.0.1');
await once(server, 'listening');

const lookup = createLookup();
const ask = (name: string) =>
  new Promise<number | null>((resolve) => {
    const begun = performance.now();
    lookup(name, { all: true }, (error) => resolve(error === null ? performance.now() - begun : null));
  });
await ask('live.test');
const asked: Promise<number | null>[] = [];
for (let second = 0; second < SECONDS; second += 1) {
  for (const n of [1, 2, 3, 4]) void ask(`dead-${n}.test`);
  asked.push(ask('live.test'));
  await sleep(1000);
}
process.stdout.write(JSON.stringify(await Promise.all(asked)));
process.exit();
