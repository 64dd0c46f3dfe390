import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);

/** Returns the lines of a folder that contain the pattern, without comments. */
function linesWith(pattern: RegExp, folder: string, end: string): string[] {
  return readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(end))
    .flatMap((file) => readFileSync(new URL(folder + file, ROOT), 'utf8').split('\n'))
    .filter((line) => !line.startsWith('--') && pattern.test(line));
}

test('no pattern in SQL has a class of characters that databases define differently', () => {
  const classes = /\\{1,2}[dswDSW]|\[:\w+:\]/;
  expect(linesWith(classes, 'migrations/', '.sql')).toEqual([]);
  // In JavaScript the classes are those of JavaScript.
  const inSql = /(~\*?|regexp_\w+\(.*|SIMILAR TO) *'/;
  for (const pattern of [`x !~ '\\d'`, `regexp_replace(x, '\\s', '')`, `x SIMILAR TO '[[:digit:]]'`]) {
    expect(pattern).toMatch(inSql);
    expect(pattern).toMatch(classes);
  }
  expect(linesWith(/SELECT/, 'src/storage/', '.ts')).not.toEqual([]);
  expect(linesWith(inSql, 'src/storage/', '.ts').filter((line) => classes.test(line))).toEqual([]);
});

test('no ordinary literal in a migration has a backslash, which the server may read as an escape', () => {
  // A literal continues on the next line.
  const continued = /^\s+'\[ \\t\]/;
  const ordinary = linesWith(/(?<!E)'[^']*\\/, 'migrations/', '.sql').filter((line) => !/E'[^']*\\/.test(line));
  expect(ordinary.filter((line) => !continued.test(line))).toEqual([]);
});
