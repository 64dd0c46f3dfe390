/** Maximum time without a tick beyond the announced duration of a step, milliseconds. */
const SILENCE_ALLOWED_MS = 60_000;

export type Liveness = ReturnType<typeof createLiveness>;
export type ProcessLiveness = ReturnType<typeof livenessOf>;

/** Tracks whether the sync loop is alive. The loop announces its pauses, so only a hung loop stops ticking. */
export function createLiveness(monotonic: () => number) {
  let tickedAt = monotonic();
  let stepMs = 0;
  return {
    /** Records a tick of the loop. @param nextStepMs announced duration of its next step, milliseconds */
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

/**
 * Combines the loops of the feeds of a process, which are read at each check: it is alive while all of them are. The check names
 * the feed of a hung loop, or else of the one that has been silent the longest.
 */
export function livenessOf(feeds: () => readonly { readonly name: string; readonly liveness: Liveness }[]) {
  return {
    check() {
      const checks = feeds().map(({ name, liveness }) => ({ feed: name, ...liveness.check() }));
      const [worst] = checks.sort((a, b) => Number(a.alive) - Number(b.alive) || b.silentMs - a.silentMs);
      return worst ?? { feed: null, alive: true, silentMs: 0 };
    },
  };
}
