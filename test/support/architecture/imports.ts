import { posix } from 'node:path';

export interface SourceFile {
  /** From the root of the project, with slashes: `src/sync/sync-feed.ts`. */
  readonly path: string;
  readonly text: string;
}

export interface Import {
  /** A file of the project (`src/sync/ports/index.ts`), or a package (`pg`, `@fastify/multipart`, `node:fs`). */
  readonly target: string;
  readonly local: boolean;
  /** It is gone after compilation. */
  readonly typeOnly: boolean;
}

const fromClause = /(?:^|[;}\n])\s*(?:import|export)\s+(?<what>[^'";]*?)\s*\bfrom\s*['"](?<specifier>[^'"]+)['"]/g;
const sideEffect = /(?:^|[;}\n])\s*import\s*['"](?<specifier>[^'"]+)['"]/g;
const dynamic = /\bimport\(\s*(?:['"](?<specifier>[^'"]+)['"])?/g;

/** Every import and re-export of a file. A dynamic import of something computed has the target `?`. */
export function importsOf(file: SourceFile): Import[] {
  const code = withoutComments(file.text);
  const found: Import[] = [];
  for (const { groups } of code.matchAll(fromClause))
    found.push(describe(file, groups?.specifier ?? '?', isTypeOnly(groups?.what ?? '')));
  for (const pattern of [sideEffect, dynamic])
    for (const { groups } of code.matchAll(pattern)) found.push(describe(file, groups?.specifier ?? '?', false));
  return found;
}

/** Good enough for imports: a `//` within a string (an address) is cut off as well. */
export function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*$/gm, '');
}

/** `type { A }`, `type A`, `{ type A, type B }`. */
function isTypeOnly(what: string): boolean {
  if (/^type\s+[\w{*]/.test(what)) return true;
  const names = /^\{(?<names>[^}]*)\}$/.exec(what)?.groups?.names?.split(',') ?? [];
  const given = names.map((name) => name.trim()).filter((name) => name !== '');
  return given.length > 0 && given.every((name) => name.startsWith('type '));
}

function describe(file: SourceFile, specifier: string, typeOnly: boolean): Import {
  if (!specifier.startsWith('.')) return { target: packageOf(specifier), local: false, typeOnly };
  const path = posix.join(posix.dirname(file.path), specifier);
  return { target: path.replace(/\.js$/, '.ts'), local: true, typeOnly };
}

function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
