import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { join } from 'node:path';

// The pipe to its standard input closes when this process ends, in whatever way. Then: a fast shutdown, and for a
// temporary server, once that is done (30 s at most), its folder goes too.
const script = `
read -r _
kill -INT "$1"
[ -n "$2" ] || exit 0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
  [ -e "$2" ] || break
  sleep 1
done
rm -rf "$3"
`;

/**
 * Sees to it that the server does not outlive this process, not even after `kill -9`. The server runs in a session of its
 * own so that Ctrl-C reaches it through us only, after the daemon's last commit; this is the price.
 *
 * @param temporary The folder to remove afterwards, and the data folder in it; null keeps everything.
 * @returns a function that dismisses the guardian
 */
export function postGuardian(server: number, temporary: { root: string; data: string } | null): () => void {
  if (process.platform === 'win32') return () => {};
  const pidFile = temporary === null ? '' : join(temporary.data, 'postmaster.pid');
  const guardian = spawn('/bin/sh', ['-c', script, 'sh', String(server), pidFile, temporary?.root ?? ''], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/',
    detached: true,
  });
  // Without a shell there is no guardian, and nothing else changes.
  guardian.on('error', () => {});
  guardian.stdin.on('error', () => {});
  guardian.unref();
  (guardian.stdin as Socket).unref();
  return () => void guardian.kill('SIGKILL');
}
