/**
 * Builds the npm package in `build/package/` (docs/decisions/0019-bundled-package.md): the program, the library and the
 * emulator as bundles, their types, and a package.json whose only dependency is the one that is not bundled.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { licencesOf, packagesOf } from './licences.mjs';
import { keepReachableTypes } from './reachable-types.mjs';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const OUTPUT = join(ROOT, 'build', 'package');
const DIST = join(OUTPUT, 'dist');
/** Not bundled: its types are part of the library's. */
const EXTERNAL = ['undici'];
const {
  private: _,
  files,
  scripts,
  devDependencies,
  overrides,
  allowScripts,
  dependencies,
  ...shared
} = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const COPIED = files.filter((name) => name !== 'dist');
const THIRD_PARTY = 'THIRD-PARTY-LICENSES.txt';

await rm(OUTPUT, { recursive: true, force: true });
await mkdir(DIST, { recursive: true });
const [chunks] = await Promise.all([bundle(), writeTypes(), renderRunbooks()]);
for (const name of COPIED) await cp(join(ROOT, name), join(OUTPUT, name), { recursive: true });
await writeFile(join(OUTPUT, THIRD_PARTY), await licencesOf(chunks.flatMap(({ moduleIds }) => moduleIds)));
await writeFile(join(ROOT, 'build', 'package-chunks.json'), JSON.stringify(chunks.map(contentsOf)));
await writeFile(join(OUTPUT, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`);

/** Every file is two folders below the package, as in `src/`, so relative paths (`migrations/`, `openapi/`) are the same. */
async function bundle() {
  const build = await rolldown({
    cwd: ROOT,
    input: {
      'program/main': 'src/main.ts',
      'library/index': 'src/index.ts',
      'emulator/index': 'src/emulator/index.ts',
    },
    platform: 'node',
    external: EXTERNAL,
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    transform: { target: 'node20' },
  });
  const { output } = await build.write({ dir: DIST, format: 'esm', chunkFileNames: 'chunks/[name]-[hash].js' });
  await build.close();
  return output.filter(({ type }) => type === 'chunk');
}

/** Returns the contents of a chunk, for the tests. */
function contentsOf({ fileName, imports, moduleIds }) {
  return { fileName, imports, packages: packagesOf(moduleIds).map(({ name }) => name) };
}

async function renderRunbooks() {
  const script = join(ROOT, 'packaging', 'render-runbooks.mjs');
  await promisify(execFile)(process.execPath, [script, join(DIST, 'runbooks')]);
}

async function writeTypes() {
  const types = join(DIST, 'types');
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['-p', join(ROOT, 'tsconfig.build.json'), '--noCheck', '--emitDeclarationOnly', '--outDir', types];
  await promisify(execFile)(process.execPath, [tsc, ...options]);
  await keepReachableTypes(types, ['index.d.ts', 'emulator/index.d.ts']);
}

function manifest() {
  return {
    ...shared,
    bin: { scanfeed: 'dist/program/main.js' },
    exports: {
      '.': { types: './dist/types/index.d.ts', default: './dist/library/index.js' },
      './emulator': { types: './dist/types/emulator/index.d.ts', default: './dist/emulator/index.js' },
      './openapi.json': './openapi/recognition-service.json',
      './package.json': './package.json',
    },
    files: [...files, THIRD_PARTY],
    dependencies: Object.fromEntries(EXTERNAL.map((name) => [name, dependencies[name]])),
  };
}
