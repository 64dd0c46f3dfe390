import type { Clock } from '../../core/clock.js';
import type { FeedsFile } from '../../settings/feeds-file.js';
import { SettingsError } from '../../settings/settings.js';

/** Interval of looking for a change, milliseconds. Polling also works for a mounted ConfigMap, whose files are replaced by links. */
const LOOK_EVERY_MS = 5_000;
/** Interval of reading a file with invalid entries again, milliseconds: the key file that an entry names may exist by now. */
const RETRY_MS = 60_000;

export interface WatchedFile {
  /** Returns the text of the file. */
  readonly readText: () => Promise<string>;
  /** @throws SettingsError */
  readonly read: () => Promise<FeedsFile>;
  readonly onRead: (file: FeedsFile) => void;
  /** Called when the file as a whole cannot be used, once for each reason in a row. The last valid one stays in force. */
  readonly onRefused: (error: SettingsError) => void;
}

/** Reads the feeds file when it changes. Resolves after the signal has aborted. */
export async function watchFeedsFile(
  { readText, read, onRead, onRefused }: WatchedFile,
  clock: Pick<Clock, 'sleep' | 'monotonic'>,
  signal: AbortSignal,
): Promise<void> {
  let known: string | null | undefined;
  let retryAt = Number.POSITIVE_INFINITY;
  let refusedFor: string | null = null;
  // In a function of its own: while this one waits, its variables would keep the settings of all feeds in memory.
  const readFile = async () => {
    try {
      const file = await read();
      if (signal.aborted) return;
      retryAt = file.invalid.length > 0 ? clock.monotonic() + RETRY_MS : Number.POSITIVE_INFINITY;
      refusedFor = null;
      onRead(file);
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      retryAt = clock.monotonic() + RETRY_MS;
      if (error.message !== refusedFor) onRefused(error);
      refusedFor = error.message;
    }
  };
  while (!signal.aborted) {
    const text = await readText().catch(() => null);
    if (signal.aborted) return;
    if (text !== known || clock.monotonic() >= retryAt) {
      known = text;
      await readFile();
    }
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}
