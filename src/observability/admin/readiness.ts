export type Readiness = ReturnType<typeof createReadiness>;

/** A latch: a sidecar's readiness is its whole pod's, so it must not follow the service or the database. */
export function createReadiness() {
  let reason: string | null = 'starting';
  return {
    /** Settings are valid and the schema was seen to be current. For good: no outage takes it away. */
    ready(): void {
      reason = null;
    },
    /** Why not yet; ignored once ready. One line, without secrets. */
    waitingFor(why: string): void {
      if (reason !== null) reason = why;
    },
    check: () => ({ ready: reason === null, reason }),
  };
}
