import type { Writable } from 'node:stream';

/** Watches a stream of the process; writing on after a failure is without effect, and ends nothing. */
export function watchOutput(stream: Writable) {
  let lost: string | null = null;
  stream.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code !== 'EPIPE') lost ??= message;
  });
  return {
    /**
     * Settles when all that was written has gone out, or cannot any more. With why not, in one line; null where nothing was
     * lost, or where its reader has gone (`scanfeed … | head`), which is no failure.
     */
    flushed: async (): Promise<string | null> => {
      // Only behind what still waits: an empty write may fail, too. Errors of what is done are told a tick later.
      if (stream.writableLength > 0) await new Promise<void>((resolve) => stream.write('', () => resolve()));
      else await new Promise<void>((resolve) => setImmediate(resolve));
      return lost;
    },
  };
}
