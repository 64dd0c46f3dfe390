import PQueue from 'p-queue';

/** Runs work as soon as fewer than the maximum are running. Rejects like the work, or if the signal aborts before its start. */
export type LimitedRun = <T>(
  work: () => Promise<T>,
  options?: { readonly signal?: AbortSignal /** Higher goes first. */; readonly priority?: number },
) => Promise<T>;

/** p-queue keeps a hundred finished tasks in memory. So its tasks hold neither the work nor its result, which may be large. */
export function limitConcurrency(maximum: number): LimitedRun {
  // Created when it is first used: most of a thousand feeds never load a result, and a queue takes a kilobyte.
  let queue: PQueue | null = null;
  return async (work, options = {}) => {
    queue ??= new PQueue({ concurrency: maximum });
    const free = await waitForSlot(queue, options);
    try {
      return await work();
    } finally {
      free();
    }
  };
}

function waitForSlot(queue: PQueue, options: NonNullable<Parameters<LimitedRun>[1]>): Promise<() => void> {
  return new Promise((resolve, reject) => {
    queue.add(() => new Promise<void>(resolve), options).catch(reject);
  });
}
