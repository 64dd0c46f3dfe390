import { describe, expect, test } from 'vitest';
import {
  findCycles,
  findFolderCycles,
  findMachinePaths,
  findViolations,
  importsOf,
  packagesLoadedBy,
  readDependencies,
  readProject,
  type SourceFile,
} from '../support/architecture/index.js';

const project = readProject();

describe.skipIf(project === null)('the project', () => {
  const files = project ?? [];
  const sources = files.filter(({ path }) => /^src\/.*\.ts$/.test(path));

  test('keeps to its import arrows, reads process.env in one place, and has no long files', () => {
    expect(sources.length).toBeGreaterThan(20);
    expect(findViolations(sources, readDependencies())).toEqual([]);
  });

  test('loads OpenTelemetry in one place, and only if traces are exported', () => {
    const tracer = 'src/observability/tracing/otlp-tracer.ts';
    const importing = (target: RegExp) =>
      sources.filter((file) => importsOf(file).some((found) => target.test(found.target)));
    expect(importing(/^@opentelemetry\//).map(({ path }) => path)).toEqual([tracer]);
    const [opener, ...others] = importing(new RegExp(`^${tracer}$`));
    expect(others).toEqual([]);
    expect(opener?.text.match(/.*otlp-tracer\.js.*/g)).toEqual([expect.stringContaining('await import(')]);
  });

  test('imports nothing in a circle', () => {
    expect(findCycles(sources)).toEqual([]);
  });

  test.each(['src/sync', 'src/storage'])('has no folders in %s that import each other in a circle', (parent) => {
    expect(findFolderCycles(parent, sources)).toEqual([]);
  });

  test('loads undici alone with the library, and no client with the emulator', () => {
    expect(packagesLoadedBy('src/index.ts', sources)).toEqual(['undici']);
    expect(packagesLoadedBy('src/emulator/index.ts', sources)).toEqual(['@fastify/multipart', 'fastify', 'zod']);
  });

  test('reads the wall clock only through a Clock', () => {
    const elsewhere = sources.filter(({ path }) => !/^src\/(core\/clock\.ts|demo\/|emulator\/)/.test(path));
    expect(elsewhere.filter(({ text }) => /\bDate\.now\b|new Date\(\)/.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test('names no folder of the machine it was written on', () => {
    expect(files.flatMap(findMachinePaths)).toEqual([]);
  });
});

describe('the check of the architecture', () => {
  const check = (path: string, text: string) => findViolations([{ path, text }], ['pg', 'undici', 'zod', '@x/y']);
  const source = (text: string): SourceFile => ({ path: 'docs/a.md', text });

  test.each([
    ['an engine that knows the store', 'src/sync/a.ts', `import { commit } from '../storage/commit/commit-page.js';`],
    ['an engine that knows the driver', 'src/sync/a.ts', `import pg from 'pg';`],
    ['a type of the driver in the engine', 'src/sync/a.ts', `import type { Pool } from 'pg';`],
    ['a re-export', 'src/service/a.ts', `export { x } from '../storage/a.js';`],
    ['a star re-export', 'src/service/a.ts', `export * from '../observability/a.js';`],
    ['an import over several lines', 'src/service/a.ts', `import {\n  a,\n  b,\n} from\n  '../storage/a.js';`],
    ['an import for its effect', 'src/storage/a.ts', `import '../service/a.js';`],
    ['a dynamic import', 'src/storage/a.ts', `const { a } = await import('../service/a.js');`],
    ['a computed import', 'src/cli/a.ts', 'const it = await import(name);'],
    [
      'an import behind another on its line',
      'src/storage/a.ts',
      `import a from './a.js'; import b from '../service/b.js';`,
    ],
    [
      'more than types of the ports',
      'src/storage/a.ts',
      `import { type Failure, thing } from '../sync/ports/index.js';`,
    ],
    ['types of the engine besides the ports', 'src/storage/a.ts', `import type { Loop } from '../sync/sync-feed.js';`],
    ['an emulator that shares a reading', 'src/emulator/a.ts', `import type { Run } from '../service/wire.js';`],
    ['an emulator that counts as the program does', 'src/emulator/a.ts', `import { a } from '../core/counts.js';`],
    ['a core that knows the engine', 'src/core/a.ts', `import { a } from '../sync/sync-feed.js';`],
    ['a test helper in the program', 'src/cli/a.ts', `import { a } from '../../test/support/a.js';`],
    ['a package that is not a dependency', 'src/cli/a.ts', `import { test } from 'vitest';`],
    ['settings read on the side', 'src/storage/a.ts', `const level = process.env.LEVEL;`],
    ['settings read by name', 'src/storage/a.ts', `const level = process['env'].LEVEL;`],
    ['a long file', 'src/cli/a.ts', 'a();\n'.repeat(301)],
  ])('reports %s', (_what, path, text) => {
    expect(check(path, text)).toHaveLength(1);
  });

  test.each([
    ['types of the ports', 'src/storage/a.ts', `import type { Failure } from '../sync/ports/index.js';`],
    ['what an error means', 'src/observability/a.ts', `import { classifyError } from '../core/errors.js';`],
    ['types of the ports, one by one', 'src/service/a.ts', `import { type A, type B } from '../sync/ports/index.js';`],
    [
      'neighbours and packages',
      'src/storage/a.ts',
      `import { a } from './b.js';\nimport pg from 'pg';\nimport z from '@x/y/z';`,
    ],
    [
      'the place where everything meets',
      'src/cli/commands/run.ts',
      `import { a } from '../sync/a.js';\nimport b from '../storage/b.js';`,
    ],
    [
      'what a comment says',
      'src/sync/a.ts',
      `// import pg from 'pg';\n/** import x from '../storage/a.js'; process.env */`,
    ],
    ['the settings', 'src/settings/settings.ts', 'const env = process.env;'],
    ['a file of 300 lines', 'src/cli/a.ts', 'a();\n'.repeat(300)],
  ])('accepts %s', (_what, path, text) => {
    expect(check(path, text)).toEqual([]);
  });

  test('finds circles of imports, those of types included', () => {
    const file = (name: string, target: string) => ({
      path: `src/${name}.ts`,
      text: `import type { A } from './${target}.js';`,
    });
    const circle = [file('a', 'b'), file('b', 'c'), file('c', 'a')];
    expect(findCycles([...circle, file('d', 'a')])).toEqual(['src/a.ts, src/b.ts, src/c.ts']);
    expect(findCycles([file('a', 'b'), file('b', 'c')])).toEqual([]);
  });

  test('finds circles of folders', () => {
    const file = (path: string, target: string) => ({
      path: `src/${path}.ts`,
      text: `import { a } from '${target}.js';`,
    });
    const circle = [file('sync/a/x', '../b/x'), file('sync/b/y', '../a/y')];
    expect(findFolderCycles('src/sync', circle)).toEqual(['a, b']);
    expect(findFolderCycles('src/sync', [file('sync/a/x', '../b/x'), file('sync/b/y', '../context')])).toEqual([]);
  });

  test('finds paths of a machine, and no addresses', () => {
    const folder = ['', 'work', 'main'].join('/');
    expect(findMachinePaths(source(`ok\nsee ${folder}\n`))).toEqual(['docs/a.md:2']);
    expect(findMachinePaths(source(`cd "${folder}"`))).toHaveLength(1);
    expect(findMachinePaths(source(`https://example.org${folder} src${folder}`))).toEqual([]);
  });
});
