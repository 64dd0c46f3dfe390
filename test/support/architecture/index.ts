import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { SourceFile } from './imports.js';

export { findCycles, findFolderCycles, packagesLoadedBy } from './cycles.js';
export { importsOf, type SourceFile } from './imports.js';
export { findMachinePaths, findViolations } from './rules.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The project's own text files, those not committed yet included. Null outside a git checkout. */
export function readProject(): SourceFile[] | null {
  let names: string;
  try {
    names = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 64 << 20,
    });
  } catch {
    return null;
  }
  return names.split('\0').flatMap((path) => (path === '' ? [] : readText(path)));
}

/** The names under `dependencies` and `peerDependencies` in package.json. */
export function readDependencies(): string[] {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    dependencies: object;
    peerDependencies: object;
  };
  return Object.keys({ ...dependencies, ...peerDependencies });
}

function readText(path: string): SourceFile[] {
  try {
    const text = readFileSync(root + path, 'utf8');
    return text.includes('\0') ? [] : [{ path, text }];
  } catch {
    // Deleted but not committed, or a link to nowhere.
    return [];
  }
}
