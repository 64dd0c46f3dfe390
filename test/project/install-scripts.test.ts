import { expect, test } from 'vitest';
import { readText } from '../support/documents.js';

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>;
}

test('package.json decides about every install script, so that npm has nothing to warn about', () => {
  const { allowScripts } = JSON.parse(readText('package.json'));
  const { packages } = JSON.parse(readText('package-lock.json')) as LockFile;
  const names = Object.entries(packages).flatMap(([path, { hasInstallScript }]) =>
    hasInstallScript ? [path.replace(/^.*node_modules\//, '')] : [],
  );
  expect(names).toContain('ssh2');
  expect(Object.keys(allowScripts)).toEqual(names);
});
