/** Lets what is in no hurry go on only while the feed itself has nothing to read. */
export interface FeedPauses {
  /** The feed waits for its next poll, or after a failure. */
  begun(): void;
  /** It reads. */
  ended(): void;
  /** Resolves while the feed waits, or when the signal aborts. */
  reached(signal: AbortSignal): Promise<void>;
}

/** The feed goes first: until it says otherwise, it reads. */
export function createFeedPauses(): FeedPauses {
  let waiting = false;
  const turns = new Set<() => void>();
  return {
    begun: () => {
      waiting = true;
      for (const turn of turns) turn();
    },
    ended: () => {
      waiting = false;
    },
    reached: (signal) =>
      new Promise((resolve) => {
        if (waiting || signal.aborted) return resolve();
        const turn = () => {
          turns.delete(turn);
          signal.removeEventListener('abort', turn);
          resolve();
        };
        turns.add(turn);
        signal.addEventListener('abort', turn, { once: true });
      }),
  };
}
