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

/**
 * Reads the feeds file when it changes. Resolves after the signal has aborted.
 * @param file what was read last
 */
export async function watchFeedsFile(
  file: FeedsFile,
  { readText, read, onRead, onRefused }: WatchedFile,
  clock: Pick<Clock, 'sleep' | 'monotonic'>,
  signal: AbortSignal,
): Promise<void> {
  const retryTimeOf = ({ invalid }: FeedsFile) =>
    invalid.length > 0 ? clock.monotonic() + RETRY_MS : Number.POSITIVE_INFINITY;
  let known: string | null = file.text;
  let retryAt = retryTimeOf(file);
  let refusedFor: string | null = null;
  // In a function of its own: while this one waits, its variables would keep the settings of all feeds in memory.
  const readFile = async () => {
    try {
      const changed = await read();
      if (signal.aborted) return;
      known = changed.text; // the file may have changed once more
      retryAt = retryTimeOf(changed);
      refusedFor = null;
      onRead(changed);
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      retryAt = clock.monotonic() + RETRY_MS;
      if (error.message !== refusedFor) onRefused(error);
      refusedFor = error.message;
    }
  };
  while (!signal.aborted) {
    await clock.sleep(LOOK_EVERY_MS, signal);
    if (signal.aborted) return;
    const text = await readText().catch(() => null);
    if (signal.aborted) return;
    if (text === known && clock.monotonic() < retryAt) continue;
    known = text;
    await readFile();
  }
}
