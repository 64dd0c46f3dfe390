export type Readiness = ReturnType<typeof createReadiness>;

/** Tracks readiness as a latch. As a sidecar it decides the readiness of the whole pod, so later outages do not change it. */
export function createReadiness() {
  let reason: string | null = 'starting';
  const latched = new AbortController();
  return {
    /** Called once the settings are valid and the schema is verified; later outages do not change it. */
    ready(): void {
      reason = null;
      latched.abort();
    },
    /** Resolves once ready, or when the signal aborts. */
    async whenReady(signal: AbortSignal): Promise<void> {
      const either = AbortSignal.any([latched.signal, signal]);
      if (!either.aborted) await new Promise((resolve) => either.addEventListener('abort', resolve, { once: true }));
    },
    /** Sets the reason for not being ready, one line without secrets. Ignored once ready. */
    waitingFor(why: string): void {
      if (reason !== null) reason = why;
    },
    check: () => ({ ready: reason === null, reason }),
  };
}
