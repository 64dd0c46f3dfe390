/** How long the loop may be silent beyond the step it announced. */
const SILENCE_ALLOWED_MS = 60_000;

export type Liveness = ReturnType<typeof createLiveness>;

/** Alive while ticks come: waiting and backing off are announced, so only a loop that is stuck falls silent. */
export function createLiveness(monotonic: () => number) {
  let tickedAt = monotonic();
  let stepMs = 0;
  return {
    /** The loop is alive, and its next step may take this many milliseconds. */
    ticked(nextStepMs: number): void {
      tickedAt = monotonic();
      stepMs = nextStepMs;
    },
    check() {
      const silentMs = monotonic() - tickedAt;
      return { alive: silentMs - stepMs < SILENCE_ALLOWED_MS, silentMs };
    },
  };
}
