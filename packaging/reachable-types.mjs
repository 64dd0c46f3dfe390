import { readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

const SPECIFIERS = /(?:\bfrom|\bimport\()\s*["'](\.[^"']+)["']/g;

/** Deletes the declaration files of a folder that none of the entries imports, directly or through others. */
export async function keepReachableTypes(folder, entries) {
  const reached = new Set(entries.map((entry) => join(folder, entry)));
  for (const file of reached) {
    for (const [, specifier] of (await readFile(file, 'utf8')).matchAll(SPECIFIERS)) {
      reached.add(join(dirname(file), specifier.replace(/\.js$/, '.d.ts')));
    }
  }
  for (const file of await readdir(folder, { recursive: true })) {
    const path = join(folder, file);
    if (relative(folder, path).endsWith('.d.ts') && !reached.has(path)) await rm(path);
  }
}
