export interface Readiness {
  /** Settings are valid and the schema was seen to be current. For good: no outage takes it away. */
  ready(): void;
  /** Why not yet; ignored once ready. One line, without secrets. */
  waitingFor(reason: string): void;
  check(): { readonly ready: boolean; readonly reason: string | null };
}

/** A latch: a sidecar's readiness is its whole pod's, so it must not follow the service or the database. */
export function createReadiness(): Readiness {
  let reason: string | null = 'starting';
  return {
    ready() {
      reason = null;
    },
    waitingFor(why) {
      if (reason !== null) reason = why;
    },
    check: () => ({ ready: reason === null, reason }),
  };
}
