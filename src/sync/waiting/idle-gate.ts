export type IdleGate = ReturnType<typeof createIdleGate>;

/** A gate that the feed opens while it has nothing to read. Passes that must not delay new runs wait for it. */
export function createIdleGate() {
  let isOpen = false;
  const waiting = new Set<() => void>();
  return {
    get isOpen(): boolean {
      return isOpen;
    },
    open: (): void => {
      isOpen = true;
      for (const resume of waiting) resume();
    },
    close: (): void => {
      isOpen = false;
    },
    /** Resolves while the gate is open, or when the signal aborts. */
    wait: (signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        if (isOpen || signal.aborted) return resolve();
        const resume = () => {
          waiting.delete(resume);
          signal.removeEventListener('abort', resume);
          resolve();
        };
        waiting.add(resume);
        signal.addEventListener('abort', resume, { once: true });
      }),
  };
}
