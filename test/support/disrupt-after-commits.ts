/** Runs a disruption after commits while a feed is followed: one at a time, so that a commit always succeeds between two. */
export function disruptAfterCommits(disrupt: () => Promise<void>): {
  readonly onCommitted: () => void;
  /** Resolves when the last disruption has ended; rejects if one failed. */
  readonly settled: () => Promise<void>;
} {
  let running: Promise<void> | null = null;
  const failures: unknown[] = [];
  return {
    onCommitted: () => {
      running ??= disrupt()
        .catch((error) => void failures.push(error))
        .finally(() => {
          running = null;
        });
    },
    settled: async () => {
      await running;
      if (failures.length > 0) throw failures[0];
    },
  };
}
