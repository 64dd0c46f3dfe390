import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, inject, test } from 'vitest';

const types = join(inject('consumer'), 'node_modules', 'scanfeed', 'dist', 'types');

test.each(['index.d.ts', 'emulator/index.d.ts'])('everything that %s exports has a comment', async (entry) => {
  const exported = await exportsOf(join(types, entry));
  expect(exported.length).toBeGreaterThan(15);
  const undocumented = await Promise.all(exported.map(({ name, file }) => undocumentedIn(name, file)));
  expect(undocumented.flat()).toEqual([]);
});

/** Returns the names that a declaration file exports from others, and these files. */
async function exportsOf(path: string) {
  const text = await readFile(path, 'utf8');
  return [...text.matchAll(/^export (?:type )?\{([^}]+)\} from '([^']+)'/gm)].flatMap(([, names = '', from = '']) =>
    names.split(',').map((name) => ({
      name: name
        .trim()
        .replace(/^type /, '')
        .replace(/ as .*/, ''),
      file: join(dirname(path), from.replace(/\.js$/, '.d.ts')),
    })),
  );
}

/** Returns the name and the members of a declaration that have no comment. Fields of an error that others explain are exempt. */
async function undocumentedIn(name: string, file: string): Promise<string[]> {
  const lines = (await readFile(file, 'utf8')).split('\n');
  const start = lines.findIndex((line) =>
    new RegExp(`^export (?:declare )?(?:abstract )?(?:interface|class|type|function|const) ${name}\\b`).test(line),
  );
  expect({ name, found: start >= 0 }).toEqual({ name, found: true });
  const length = lines.slice(start).findIndex((line) => /^\}|;$/.test(line) && !line.startsWith(' '));
  const isMember = (line: string) =>
    /^ {4}(?:readonly )?(?!constructor|private|#)\w+\??[:(]/.test(line) && !INHERITED.test(line);
  const hasComment = (index: number) => /\*\/\s*$/.test(lines[index - 1] ?? '');
  const members = lines.flatMap((line, index) =>
    index > start && index < start + length && isMember(line) ? [index] : [],
  );
  return [start, ...members].filter((index) => !hasComment(index)).map((index) => `${name}: ${lines[index]?.trim()}`);
}

/** Members that a base class or interface explains, and those that are a text themselves. */
const INHERITED = /^ {4}readonly (?:kind|action|status|germanText|retryAfterMs)\b|^ {4}readonly \w+: '/;
