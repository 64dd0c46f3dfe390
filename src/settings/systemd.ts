/** Variables that systemd passes to a service of `Type=notify` (sd_notify(3), sd_watchdog_enabled(3)). */
export interface SystemdSettings {
  /** The socket for notifications; null if the process is not such a service. */
  readonly notifySocket: string | null;
  /** Time after which a silent service counts as hung, milliseconds; null: there is no watchdog. */
  readonly watchdogMs: number | null;
}

/** Reads the variables that systemd sets. They are not settings: nobody sets them by hand, and a wrong one is ignored. */
export function readSystemd(env: NodeJS.ProcessEnv, pid = process.pid): SystemdSettings {
  const { NOTIFY_SOCKET, WATCHDOG_USEC = '', WATCHDOG_PID } = env;
  const isOurs = WATCHDOG_PID === undefined || WATCHDOG_PID === String(pid);
  const microseconds = /^[1-9]\d*$/.test(WATCHDOG_USEC) && isOurs ? Number(WATCHDOG_USEC) : null;
  return {
    notifySocket: NOTIFY_SOCKET || null,
    watchdogMs: microseconds === null ? null : microseconds / 1000,
  };
}
