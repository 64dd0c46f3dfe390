import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/**
 * SHA-256 of each migration that a release contains. A released file never changes, not even its comments: databases that
 * have applied it would differ from new ones. A release adds its new files here; other changes need a new migration.
 */
const RELEASED: Readonly<Record<string, string>> = {
  // 0.1.0, which is prepared but not published.
  '0001_runs_and_feeds.sql': '696dd05bc314ec57032d5a7148fed47707be0e3032932a47c7cb7c52f86bb3f2',
  '0002_reporting.sql': 'e577a34db1cfd7e03771ab7f9980f9117e5b4a3566cac3a9cc95e5c806c64ba5',
};

const MIGRATIONS = new URL('../../migrations/', import.meta.url);
const files = readdirSync(MIGRATIONS).sort();
const sha256 = (file: string) =>
  createHash('sha256')
    .update(readFileSync(new URL(file, MIGRATIONS)))
    .digest('hex');

test('no released migration has changed', () => {
  const released = files.filter((file) => file in RELEASED);
  expect(Object.fromEntries(released.map((file) => [file, sha256(file)]))).toEqual(RELEASED);
});

test('migrations are numbered without gaps, and new ones follow the released ones', () => {
  expect(files.map((file) => Number(file.slice(0, 4)))).toEqual(files.map((_, index) => index + 1));
  expect(files.slice(0, Object.keys(RELEASED).length)).toEqual(Object.keys(RELEASED));
});
