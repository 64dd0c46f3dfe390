/** How a caller waits. */
export interface WaitOptions {
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined;
  /** Higher goes first; equals in the order of their arrival. Default 0. */
  readonly priority?: number | undefined;
}

interface Waiter {
  readonly priority: number;
  readonly admit: () => void;
}

/** Callers that wait until they are admitted. */
export class WaitingLine {
  readonly #waiters: Waiter[] = [];

  get isEmpty(): boolean {
    return this.#waiters.length === 0;
  }

  /** Resolves when the caller is admitted. Rejects with the reason of the signal if it aborts before. */
  wait({ signal, priority = 0 }: WaitOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const leave = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(signal?.reason);
      };
      const admit = () => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const waiter = { priority, admit };
      signal?.addEventListener('abort', leave, { once: true });
      this.#waiters.splice(this.#waiters.findLastIndex((other) => other.priority >= priority) + 1, 0, waiter);
    });
  }

  /** Admits the first caller, or the first of `preferred` priority if there is one. Returns whether anybody was waiting. */
  admitNext(preferred?: number): boolean {
    const at = this.#waiters.findIndex(({ priority }) => priority === preferred);
    const [next] = this.#waiters.splice(Math.max(0, at), 1);
    next?.admit();
    return next !== undefined;
  }
}
