import { importsOf, type SourceFile } from './imports.js';

/** One line for each group of files that import each other in a circle, imports of types included. */
export function findCycles(files: readonly SourceFile[]): string[] {
  return circlesOf(new Map(files.map((file) => [file.path, importsOf(file).map(({ target }) => target)])));
}

/** The same for the folders directly in a folder. Its own files may be imported by any of them. */
export function findFolderCycles(parent: string, files: readonly SourceFile[]): string[] {
  const folderOf = (path: string) => path.match(`^${parent}/([^/]+)/`)?.[1];
  const imports = new Map<string, string[]>();
  for (const file of files) {
    const folder = folderOf(file.path);
    if (folder === undefined) continue;
    const others = importsOf(file).flatMap(({ target }) => folderOf(target) ?? []);
    imports.set(folder, [...(imports.get(folder) ?? []), ...others.filter((other) => other !== folder)]);
  }
  return circlesOf(imports);
}

function circlesOf(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const reachable = new Map([...imports.keys()].map((path) => [path, reach(path, imports)]));
  const circles = [...reachable].filter(([path, targets]) => targets.has(path));
  const groups = circles.map(([path, targets]) =>
    circles.flatMap(([other, back]) => (targets.has(other) && back.has(path) ? [other] : [])).join(', '),
  );
  return [...new Set(groups)];
}

/** Every file that `path` imports, directly or through others. */
function reach(path: string, imports: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const reached = new Set<string>();
  const open = [path];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const target of imports.get(next) ?? []) {
      if (reached.has(target)) continue;
      reached.add(target);
      open.push(target);
    }
  }
  return reached;
}

/** Returns the packages that are loaded with a file, directly or through others, sorted. Imports of types load nothing. */
export function packagesLoadedBy(path: string, files: readonly SourceFile[]): string[] {
  const loaded = new Map(files.map((file) => [file.path, importsOf(file).filter(({ typeOnly }) => !typeOnly)]));
  const targets = new Map([...loaded].map(([from, imports]) => [from, imports.map(({ target }) => target)]));
  const packages = [...reach(path, targets)].filter(
    (target) => !target.startsWith('src/') && !target.startsWith('node:'),
  );
  return packages.sort();
}
