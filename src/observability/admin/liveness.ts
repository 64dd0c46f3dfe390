/** Maximum time without a tick beyond the announced duration of a step, milliseconds. */
const SILENCE_ALLOWED_MS = 60_000;

export type Liveness = ReturnType<typeof createLiveness>;

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

/** Combines the loops of a process, which are read at each check: it is alive while all of them are. The check reports the worst. */
export function livenessOf(loops: () => Iterable<Pick<Liveness, 'check'>>): Pick<Liveness, 'check'> {
  return {
    check() {
      const checks = [...loops()].map((loop) => loop.check());
      const hung = checks.filter(({ alive }) => !alive);
      const reported = hung.length > 0 ? hung : checks;
      return {
        alive: hung.length === 0,
        silentMs: reported.reduce((longest, { silentMs }) => Math.max(longest, silentMs), 0),
      };
    },
  };
}
