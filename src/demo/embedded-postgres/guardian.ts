import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/**
 * Sees to it that the server does not outlive this process, not even after `kill -9`. The server runs in a session of its
 * own so that Ctrl-C reaches it through us only, after the daemon's last commit; this is the price.
 * @returns a function that dismisses the guardian
 */
export function postGuardian(server: number): () => void {
  return runAfterThisProcess('kill -INT "$1"', String(server)); // a fast shutdown
}

/**
 * Runs a shell script once this process has ended, in whatever way: the pipe to the shell's standard input closes then.
 * @param parameters `$1` and so on
 * @returns a function that ends the wait for that
 */
export function runAfterThisProcess(script: string, ...parameters: readonly string[]): () => void {
  if (process.platform === 'win32') return () => {};
  const guardian = spawn('/bin/sh', ['-c', `read -r _\n${script}`, 'sh', ...parameters], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/',
    detached: true,
  });
  // Without a shell nothing is run, and nothing else changes.
  guardian.on('error', () => {});
  guardian.stdin.on('error', () => {});
  guardian.unref();
  (guardian.stdin as Socket).unref();
  return () => void guardian.kill('SIGKILL');
}
