import { describe, expect, test } from 'vitest';
import { filesBelow, readText } from '../support/documents.js';
import { findAvoidedWords } from '../support/words.js';

/** Files and folders whose language is checked. */
const CHECKED = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  '.github/',
  'bench/',
  'compose/',
  'docs/',
  'helm/',
  'migrations/',
  'src/',
];

const files = CHECKED.flatMap((path) => (path.endsWith('/') ? filesBelow(path) : [path])).filter((path) =>
  /\.(?:gotmpl|md|pml|sql|tpl|ts|ya?ml)$/.test(path),
);

test.each(files)('%s uses the words of the project', (path) => {
  expect(findAvoidedWords(path, readText(path))).toEqual([]);
});

describe('findAvoidedWords', () => {
  test('finds a word in a comment, with its line', () => {
    expect(findAvoidedWords('a.ts', 'const a = 1;\n// Whoever reads this.')).toEqual([
      'a.ts:2: "Whoever" (instead: a named subject)',
    ]);
  });

  test('finds a former name in the code of a page, but no words there', () => {
    expect(findAvoidedWords('a.md', 'the table `troubles`, and `goes on`')).toEqual([
      'a.md:1: "troubles" (instead: Failure, classifyError, recent_errors)',
    ]);
  });

  test('accepts a word in another sense', () => {
    expect(findAvoidedWords('a.md', 'Replicas stand by. The cursor comes from the service.')).toEqual([]);
  });
});
