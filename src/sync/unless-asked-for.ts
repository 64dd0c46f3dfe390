import type { BackfillContext } from './backfill-pages.js';
import { linkedSignal } from './linked-signal.js';
import type { PassResult } from './run-pass.js';

/** How often it is looked whether a stretch is asked for, at least. */
export const LOOK_MS = 5_000;

/**
 * Reads the history until a stretch is asked for, which somebody waits for: then it ends in the midst of a page, whether
 * that waits for its results or for the feed itself, and is to be gone on with from where the store stands.
 */
export async function unlessAskedFor(
  read: (until: AbortSignal) => Promise<PassResult>,
  feed: string,
  { store, clock }: Pick<BackfillContext, 'store' | 'clock'>,
  signal: AbortSignal,
): Promise<PassResult> {
  const asked = linkedSignal(signal);
  const over = linkedSignal(signal);
  const isAskedFor = async () => (await store.nextBackfill(feed).catch(() => null))?.kind === 'request';
  const watch = async () => {
    while (!over.signal.aborted) {
      await clock.sleep(LOOK_MS, over.signal);
      if (!over.signal.aborted && (await isAskedFor())) return asked.abort();
    }
  };
  void watch();
  try {
    return await read(asked.signal);
  } catch (error) {
    if (signal.aborted || !asked.signal.aborted) throw error;
    return 'more';
  } finally {
    over.abort();
    over.unlink();
    asked.unlink();
  }
}
