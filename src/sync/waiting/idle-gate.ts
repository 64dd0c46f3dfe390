/** Open while the feed has nothing to read. Passes that must not delay new runs wait for it. */
export interface IdleGate {
  readonly isOpen: boolean;
  open(): void;
  close(): void;
  /** Resolves while the gate is open, or when the signal aborts. */
  wait(signal: AbortSignal): Promise<void>;
}

/** Closed until the feed opens it. */
export function createIdleGate(): IdleGate {
  let isOpen = false;
  const waiting = new Set<() => void>();
  return {
    get isOpen() {
      return isOpen;
    },
    open: () => {
      isOpen = true;
      for (const resume of waiting) resume();
    },
    close: () => {
      isOpen = false;
    },
    wait: (signal) =>
      new Promise((resolve) => {
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
