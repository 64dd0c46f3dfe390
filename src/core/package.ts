import { readFileSync } from 'node:fs';

/**
 * The folder of the package, which contains `migrations/` and `package.json`. It is two folders up both from `dist/core/` and
 * from the bundle in `dist/program/` (rolldown.config.mjs).
 */
export const PACKAGE_FOLDER = new URL('../../', import.meta.url);

/** Returns the version of this package. */
export function packageVersion(): string {
  const text = readFileSync(new URL('package.json', PACKAGE_FOLDER), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
