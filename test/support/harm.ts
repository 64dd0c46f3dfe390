/** Harm that is done behind commits while a feed is followed: one at a time, so that something is always committed in between. */
export function harmBehindCommits(harm: () => Promise<void>): {
  readonly onCommitted: () => void;
  /** Settles when the last harm is done; rejects if one failed. */
  readonly settled: () => Promise<void>;
} {
  let under: Promise<void> | null = null;
  const failures: unknown[] = [];
  return {
    onCommitted: () => {
      under ??= harm()
        .catch((error) => void failures.push(error))
        .finally(() => {
          under = null;
        });
    },
    settled: async () => {
      await under;
      if (failures.length > 0) throw failures[0];
    },
  };
}
