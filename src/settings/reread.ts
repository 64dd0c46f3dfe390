import { readFileSync } from 'node:fs';
import { readFile as readLater } from 'node:fs/promises';

/** Reads a text file. Throws as `readFileSync` does. */
export type ReadFile = (path: string) => string;

export function readText(path: string): string {
  return readFileSync(path, 'utf8');
}

/** Returns a function that reads like this one, and does not block the process if it is {@link readText}: a network may hang. */
export function unblocked(readFile: ReadFile): (path: string) => Promise<string> {
  return readFile === readText ? (path) => readLater(path, 'utf8') : async (path) => readFile(path);
}

/** A variable whose files are unusable, so that the last valid value is kept. */
export interface KeptValue {
  readonly variable: string;
  /** Contains no part of a file. */
  readonly reason: string;
}

/** A value that was read from files. */
interface ReadValue<T> {
  readonly variable: string;
  readonly files: readonly string[];
  readonly texts: readonly string[];
  readonly value: T;
  /** Throws if the texts are unusable. */
  readonly parse: (texts: readonly string[]) => T;
}

/**
 * Returns a function that reads the files again and returns their value. While they are missing or unusable, for example because they
 * are being replaced, it returns the last valid value. The reason is reported once until they are usable again.
 */
export function rereading<T>(
  { variable, files, texts, value: first, parse }: ReadValue<T>,
  readFile: ReadFile,
  onKept: (kept: KeptValue) => void,
): () => Promise<T> {
  const read = unblocked(readFile);
  let known = JSON.stringify(texts);
  let value = first;
  let reported: string | null = null;
  return async () => {
    try {
      const current = await Promise.all(files.map(read));
      const text = JSON.stringify(current);
      if (text !== known) value = parse(current);
      known = text;
      reported = null;
    } catch (error) {
      const { code: reason = 'its content is invalid' } = error as NodeJS.ErrnoException;
      if (reason !== reported) onKept({ variable, reason });
      reported = reason;
    }
    return value;
  };
}
