import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../ports.js';
import { type Cluster, processOptions, programFailure } from './cluster.js';

export type ServerSettings = Readonly<Record<string, string>>;

/** Time for a server that was killed, or that is shutting down, to release the data. */
const RELEASE_MS = 5_000;
const RETRY_MS = 200;

const READY_CHECK_MS = 20;

/**
 * Becomes the server, after it has started a process that stops it when standard input ends. That is a pipe from this
 * process, which also closes after SIGKILL.
 */
const RUN = `
exec 3<&0 </dev/null
( ( read -r _ <&3; kill -INT $$ ) & )
exec "$@" 3<&-`;

/**
 * Starts the server on a port of 127.0.0.1, the wanted one if it is free. PostgreSQL refuses to start while another
 * process uses the data or the port, so this tries for a while.
 * @returns its port, and a function that stops it, which can be called again
 * @throws {CommandFailure} if it does not start
 */
export async function startServer(
  cluster: Cluster,
  { port: wanted, settings }: { readonly port: number | null; readonly settings: ServerSettings },
  signal: AbortSignal,
): Promise<{ readonly port: number; readonly stop: () => Promise<void> }> {
  const log = logFile(cluster);
  const { length } = await readText(log);
  for (const giveUpAt = performance.now() + RELEASE_MS; ; await sleep(RETRY_MS, undefined, { signal })) {
    await removeForeignLock(cluster);
    const port = await findFreePort(wanted);
    const stop = await runServer(cluster, { ...settings, port: String(port) }, signal);
    if (stop !== null) return { port, stop };
    if (performance.now() < giveUpAt) continue;
    const { pid } = await readLock(cluster);
    const remedy =
      pid > 0 ? `If the demo already runs (process ${pid}), stop it with Ctrl-C where it was started.` : undefined;
    throw programFailure(`PostgreSQL did not start (${log})`, (await readText(log)).slice(length), remedy);
  }
}

/** Returns a function that stops the server, or null if it does not start. */
async function runServer(cluster: Cluster, settings: ServerSettings, signal: AbortSignal) {
  const all = Object.entries({ ...settings, listen_addresses: '127.0.0.1', unix_socket_directories: '' });
  const options = all.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const log = await open(logFile(cluster), 'a', 0o600);
  const command = [join(cluster.bin, 'postgres'), '-D', cluster.data, ...options];
  const server = spawn('/bin/sh', ['-c', RUN, 'sh', ...command], {
    ...processOptions(cluster, cluster.data),
    stdio: ['pipe', log.fd, log.fd],
    detached: true, // Ctrl-C must not end it before the daemon's last commit
  });
  await log.close();
  const ended = once(server, 'exit');
  const stop = async () => {
    server.stdin?.destroy();
    await ended;
  };
  try {
    while (server.exitCode === null && server.signalCode === null) {
      const { pid, isReady } = await readLock(cluster);
      if (pid === server.pid && isReady) return stop;
      await sleep(READY_CHECK_MS, undefined, { signal });
    }
    return null;
  } catch {
    await stop();
    throw signal.reason;
  }
}

/** Removes a lock file left by a crash if its number belongs to another program now (where /proc shows programs). */
async function removeForeignLock(cluster: Cluster): Promise<void> {
  const { pid } = await readLock(cluster);
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => 'postgres');
  if (!command.split('\0')[0]?.endsWith('postgres')) await rm(lockFile(cluster), { force: true });
}

/** PostgreSQL's lock file: line 1 is the number of the server's process, and line 8 its state. */
async function readLock(cluster: Cluster) {
  const lines = (await readText(lockFile(cluster))).split('\n');
  return { pid: Number(lines[0]), isReady: lines[7]?.trim() === 'ready' };
}

const logFile = ({ directory }: Cluster) => join(directory, 'postgres.log');
const lockFile = ({ data }: Cluster) => join(data, 'postmaster.pid');
const readText = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
