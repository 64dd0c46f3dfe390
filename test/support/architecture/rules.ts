import { type Import, importsOf, type SourceFile, withoutComments } from './imports.js';

interface Layer {
  /** Folders below `src/` that it must not import from. */
  readonly folders: readonly string[];
  readonly packages: readonly string[];
  /** Files whose types it may import all the same. */
  readonly typesOf: readonly string[];
}

const ports = 'src/sync/ports/index.ts';
const drivers = ['pg', 'kysely', 'undici', 'fastify', 'prom-client', 'pino'];
/** The folders that put the others together. */
const outer = ['daemon', 'emulator', 'demo', 'cli'];

/** What each folder below `src/` must not import. `cli/`, `daemon/` and `demo/` put everything together. */
const layers: Readonly<Record<string, Layer>> = {
  core: {
    folders: ['service', 'storage', 'observability', 'settings', 'sync', 'library', ...outer],
    packages: drivers,
    typesOf: [],
  },
  sync: {
    folders: ['service', 'storage', 'observability', 'settings', 'library', ...outer],
    packages: drivers,
    typesOf: [],
  },
  service: {
    folders: ['storage', 'observability', 'settings', 'sync', 'library', ...outer],
    packages: ['pg', 'kysely'],
    typesOf: [ports],
  },
  storage: {
    folders: ['service', 'observability', 'settings', 'sync', 'library', ...outer],
    packages: ['undici'],
    typesOf: [ports],
  },
  observability: {
    folders: ['service', 'storage', 'settings', 'sync', 'library', ...outer],
    packages: ['pg', 'kysely', 'undici'],
    typesOf: [ports],
  },
  settings: {
    folders: ['service', 'storage', 'observability', 'sync', 'library', ...outer],
    packages: drivers,
    typesOf: [],
  },
  // For programs with a store of their own.
  library: {
    folders: ['storage', 'observability', 'settings', ...outer],
    packages: drivers.filter((name) => name !== 'undici'),
    typesOf: [],
  },
  daemon: { folders: ['emulator', 'demo', 'cli'], packages: [], typesOf: [] },
  // The emulator shares nothing with the client, so that a misreading of the interface cannot hide in both.
  emulator: {
    folders: ['core', 'service', 'sync', 'storage', 'observability', 'settings', 'library', 'daemon', 'demo', 'cli'],
    packages: ['pg', 'kysely', 'undici'],
    typesOf: [],
  },
};

const longestFile = 300;

/** One line for everything in `files` (all of `src/`) that breaks a rule. */
export function findViolations(files: readonly SourceFile[], dependencies: readonly string[]): string[] {
  return files.flatMap((file) => [
    ...importsOf(file).flatMap((found) => explain(file, found, dependencies)),
    ...checkText(file),
  ]);
}

function explain(file: SourceFile, found: Import, dependencies: readonly string[]): string[] {
  const complain = (why: string) => [`${file.path} imports ${found.target}: ${why}`];
  if (found.target === '?') return complain('only what is written out can be checked');
  const [, folder = ''] = /^src\/([^/]+)\//.exec(file.path) ?? [];
  const layer = layers[folder];
  if (!found.local) {
    if (layer?.packages.includes(found.target)) return complain(`not for ${folder}/`);
    const known = found.target.startsWith('node:') || dependencies.includes(found.target);
    return known ? [] : complain('not a dependency of the package');
  }
  if (!found.target.startsWith('src/')) return complain('the program stands without the rest of the repository');
  const [, target = ''] = /^src\/([^/]+)\//.exec(found.target) ?? [];
  if (!layer?.folders.includes(target)) return [];
  if (layer.typesOf.includes(found.target)) return found.typeOnly ? [] : complain('only its types');
  return complain(`${folder}/ does not know ${target}/`);
}

function checkText({ path, text }: SourceFile): string[] {
  const found: string[] = [];
  const readsSettings = path.startsWith('src/settings/');
  if (!readsSettings && /\bprocess\s*(\?\.|\.|\[\s*['"])\s*env\b/.test(withoutComments(text)))
    found.push(`${path} reads process.env: only the settings do`);
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
  if (lines > longestFile) found.push(`${path} has ${lines} lines: more than ${longestFile} are two things`);
  return found;
}

// A path of somebody's machine, not a part of an address or of a longer path.
const machinePath = /(?<![\w.:-])\/(?:work|tmp\/(?:bash_jobs|brief|n24))\b(?!\w*:)/;

/** `path:line` of every place that names a folder of the machine it was written on. */
export function findMachinePaths({ path, text }: SourceFile): string[] {
  return text.split('\n').flatMap((line, index) => (machinePath.test(line) ? [`${path}:${index + 1}`] : []));
}
