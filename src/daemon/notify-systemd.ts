import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Clock } from '../core/clock.js';
import type { ProcessLiveness } from '../observability/admin/liveness.js';
import type { Readiness } from '../observability/admin/readiness.js';
import type { Logger } from '../observability/log/logger.js';
import type { SystemdSettings } from '../settings/systemd.js';

/** Maximum time of one notification, milliseconds. */
const SEND_MS = 5_000;
/** Pause after a notification that could not be sent, milliseconds. */
const RETRY_MS = 5_000;

export interface NotifyContext {
  readonly readiness: Readiness;
  readonly liveness: ProcessLiveness;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Sends one assignment of sd_notify(3). */
type Send = (assignment: string) => Promise<unknown>;

/**
 * Tells systemd when the daemon is ready, that its loop is alive, and when it stops. Resolves after the signal has aborted.
 * Never rejects: if a notification cannot be sent, that is logged once.
 */
export async function notifySystemd(
  watchdogMs: SystemdSettings['watchdogMs'],
  { readiness, liveness, logger, clock }: NotifyContext,
  send: Send,
  signal: AbortSignal,
): Promise<void> {
  let warned = false;
  /** Returns whether it was sent. */
  const notify = async (assignment: string) => {
    try {
      await send(assignment);
      return true;
    } catch (error) {
      if (!warned) logger.warn('systemd could not be notified', { assignment, error });
      warned = true;
      return false;
    }
  };
  await readiness.whenReady(signal);
  // Half of the time, as sd_watchdog_enabled(3) recommends.
  const pauseMs = watchdogMs === null ? Number.POSITIVE_INFINITY : watchdogMs / 2;
  let isReady = false;
  while (!signal.aborted) {
    isReady ||= await notify('READY=1');
    const isSent = watchdogMs === null || !liveness.check().alive || (await notify('WATCHDOG=1'));
    await clock.sleep(isReady && isSent ? pauseMs : Math.min(RETRY_MS, pauseMs), signal);
  }
  await notify('STOPPING=1');
}

/**
 * Returns a function that sends assignments to the socket of systemd. Node.js has no datagram sockets of the Unix domain, so it
 * runs `systemd-notify`, which every system with systemd has.
 */
export function systemdSender(socket: string): Send {
  const run = promisify(execFile);
  // The program gets nothing else of the environment, which may contain the key.
  const env = { NOTIFY_SOCKET: socket, PATH: '/usr/local/bin:/usr/bin:/bin' };
  return (assignment) => run('systemd-notify', [assignment], { env, timeout: SEND_MS, killSignal: 'SIGKILL' });
}
