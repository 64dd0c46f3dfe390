import { spawn } from 'node:child_process';
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for a server whose data are not kept. */
export interface TemporaryFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * Removes the folder ($1) when standard input ends: a pipe from this process, which also closes after SIGKILL. Waits 30 s
 * at most for the server in it.
 */
const REMOVE = `
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
  ls "$1"/*/postmaster.pid || break
  sleep 1
done
rm -rf "$1"`;

/** The file system of Linux that keeps files in memory, where thousands of small ones cost a fifth of the time. */
const IN_MEMORY = '/dev/shm';

/** Minimum of free bytes there: several times what all databases of a run take. In containers it often has 64 MiB. */
const NEEDED_BYTES = 6 * 1024 ** 3;

/** Returns a folder whose files are kept in memory, or the system's folder for temporary files if there is too little. */
export async function folderInMemory(): Promise<string> {
  const free = await statfs(IN_MEMORY).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free < NEEDED_BYTES ? tmpdir() : IN_MEMORY;
}

/** Makes a folder, which is removed when this process ends at the latest. */
export async function makeTemporaryFolder(parent = tmpdir()): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(parent, 'scanfeed-postgres-'));
  const shell = spawn('/bin/sh', ['-c', REMOVE, 'sh', path], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  const remove = async () => {
    // A server that was killed may still be ending.
    await rm(path, { recursive: true, force: true, maxRetries: 5 });
    shell.stdin.destroy();
  };
  return { path, remove };
}
