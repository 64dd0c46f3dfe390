import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/**
 * Receives as systemd does: prints each assignment as a line, and closes received descriptors, for which `systemd-notify` waits.
 * In Python, because Node.js has no datagram sockets of the Unix domain.
 */
const RECEIVER = `
import os, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('listening', flush=True)
while True:
    data, descriptors, _, _ = socket.recv_fds(receiver, 4096, 8)
    for descriptor in descriptors:
        os.close(descriptor)
    for line in data.decode().splitlines():
        print(line, flush=True)
`;

/** The end of systemd that a service of `Type=notify` talks to: a real datagram socket. */
export async function startServiceManager() {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-notify-'));
  const socket = join(folder, 'notify');
  const receiver = spawn('python3', ['-c', RECEIVER, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  const received: string[] = [];
  const lines = createInterface(receiver.stdout).on('line', (line) => received.push(line));
  await once(lines, 'line');
  return {
    socket,
    /** Everything received but the barriers of `systemd-notify`. */
    received: () => received.slice(1).filter((line) => line !== 'BARRIER=1'),
    close: async () => {
      receiver.kill('SIGKILL');
      await once(receiver, 'close');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
