import { readdir, readFile } from 'node:fs/promises';
import { PACKAGE_FOLDER } from '../../core/package.js';

/** A plain `.sql` file of `migrations/`, named `NNNN_what_it_adds.sql`. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  /** The oldest schema version whose release can still use the schema after this migration (its `works-from` line). */
  readonly worksFrom: number;
  readonly text: string;
}

const MIGRATIONS = new URL('migrations/', PACKAGE_FOLDER);
/** Reads the migrations of this release, oldest first. */
export async function readMigrations(): Promise<readonly Migration[]> {
  const files = (await readdir(MIGRATIONS)).filter((file) => /^\d{4}_\w+\.sql$/.test(file)).sort();
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(new URL(file, MIGRATIONS), 'utf8');
      const version = Number(file.slice(0, 4));
      const worksFrom = Number(/^-- works-from: (\d+)$/m.exec(text)?.[1] ?? version);
      return { version, name: file.slice(5, -4), worksFrom, text };
    }),
  );
}
