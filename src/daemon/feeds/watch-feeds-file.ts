import type { Clock } from '../../core/clock.js';
import type { FeedsFile } from '../../settings/feeds-file.js';
import { SettingsError } from '../../settings/settings.js';

/** Interval between checks for a change, milliseconds. Polling also works for a mounted ConfigMap, whose files are symlinks. */
const CHECK_INTERVAL_MS = 5_000;
/** Pause after a new reason to reject the file, milliseconds. */
const RETRY_MS = 60_000;
/** How long the file must stay as it is before a feed moves to another schema, service or key, milliseconds. */
const MOVE_MS = 60_000;
/** Pause after the file is rejected again for the same reason, milliseconds. Parsing a large file takes seconds. */
const REFUSED_AGAIN_MS = 600_000;

/** Reads the feeds file and looks at its key files. */
export interface FeedsFileReader {
  readonly readText: () => Promise<string>;
  /** @throws SettingsError */
  readonly read: () => Promise<FeedsFile>;
  /** Returns a text that changes when a key file does. Rejects if it is missing. */
  readonly versionOf: (keyFile: string) => Promise<string>;
}

export interface WatchedFile extends FeedsFileReader {
  readonly onRead: (file: FeedsFile) => void;
  /** Returns the names of feeds to which the file gives another schema, service or key. */
  readonly movedIn: (file: FeedsFile) => readonly string[];
  /** Called when a file with such feeds is seen. It is followed once it has stayed the same for `ms`. */
  readonly onMoved: (feeds: readonly string[], ms: number) => void;
  /** Called when the file as a whole cannot be used, once for each reason in a row. The last valid one stays in force. */
  readonly onRefused: (error: SettingsError) => void;
}

/**
 * Reads the feeds file when it changes. Resolves after the signal has aborted.
 * @param file what was read last
 */
export async function watchFeedsFile(
  file: FeedsFile,
  { readText, read, versionOf, onRead, movedIn, onMoved, onRefused }: WatchedFile,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let known: string | null = file.text;
  let keyFiles = file.invalidKeyFiles;
  let keyVersions = '[]'; // so that key files are looked at once more after the start
  /** When the same text is read again, monotonic milliseconds. */
  let retryAt = Number.POSITIVE_INFINITY;
  let refusedFor: string | null = null;
  /** Text that moves feeds and is not followed yet. */
  let heldText: string | null = null;
  // A separate function, since the variables of the waiting one would keep the settings of all feeds in memory.
  const readFile = async () => {
    try {
      const changed = await read();
      if (signal.aborted) return;
      known = changed.text; // the file may have changed once more
      keyFiles = changed.invalidKeyFiles;
      retryAt = Number.POSITIVE_INFINITY;
      refusedFor = null;
      const moved = changed.text === heldText ? [] : movedIn(changed);
      heldText = moved.length > 0 ? changed.text : null;
      if (heldText === null) return onRead(changed);
      retryAt = clock.monotonic() + MOVE_MS;
      onMoved(moved, MOVE_MS);
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      const isRepeated = error.message === refusedFor;
      retryAt = clock.monotonic() + (isRepeated ? REFUSED_AGAIN_MS : RETRY_MS);
      refusedFor = error.message;
      heldText = null;
      if (!isRepeated) onRefused(error);
    }
  };
  while (!signal.aborted) {
    await clock.sleep(CHECK_INTERVAL_MS, signal);
    if (signal.aborted) return;
    const text = await readText().catch(() => null);
    const versions = await versionsOf(keyFiles, versionOf);
    if (signal.aborted) return;
    const isWaiting = retryAt !== Number.POSITIVE_INFINITY;
    const isChanged = text !== known || (isWaiting ? clock.monotonic() >= retryAt : versions !== keyVersions);
    if (!isChanged) continue;
    known = text;
    keyVersions = versions;
    await readFile();
  }
}

async function versionsOf(keyFiles: readonly string[], versionOf: WatchedFile['versionOf']): Promise<string> {
  const versions = keyFiles.map(async (path) => [path, await versionOf(path).catch(() => 'missing')]);
  return JSON.stringify(await Promise.all(versions));
}
