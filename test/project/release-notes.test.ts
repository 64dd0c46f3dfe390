import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';

const FILES = {
  'package.json': '{"version":"0.2.0"}',
  'package-lock.json': '{"version":"0.2.0"}',
  'helm/scanfeed/Chart.yaml': 'name: scanfeed\nversion: 0.2.0\nappVersion: 0.2.0\n',
  'compose.yaml': 'image: ghcr.io/scanfeed/scanfeed:0.2.0}\n',
  Dockerfile: 'FROM scratch\nARG VERSION=0.2.0\nARG REVISION=unknown\n',
  'CHANGELOG.md': [
    '# Changelog\n\n## [Unreleased]\n\n- Later.\n',
    '## [0.2.0] - 2027-01-31\n\n### Added\n\n- New.\n',
    '## [0.1.0] - 2026-11-25\n\n- First.\n',
  ].join('\n'),
};

/** Runs the script in a checkout with these files. */
async function run(tag: string, changed: Partial<typeof FILES> = {}) {
  const root = await mkdtemp(join(tmpdir(), 'scanfeed-release-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries({ ...FILES, ...changed })) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  const script = join(root, '.ci', 'release-notes.mjs');
  await cp('.ci/release-notes.mjs', script);
  return promisify(execFile)(process.execPath, [script, tag]).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

describe('release-notes.mjs', () => {
  test('prints the section of the release alone', async () => {
    expect(await run('v0.2.0')).toEqual({ code: 0, stdout: '### Added\n\n- New.\n', stderr: '' });
  });

  test.each([
    ['v0.3.0', {}, /^package\.json is 0\.2\.0, not 0\.3\.0$/m],
    ['0.2.0', {}, /^"0\.2\.0" is not a tag such as v0\.1\.0$/m],
    ['v0.2.0', { 'package-lock.json': '{"version":"0.1.0"}' }, /^package-lock\.json is 0\.1\.0, not 0\.2\.0$/m],
    ['v0.2.0', { 'helm/scanfeed/Chart.yaml': 'version: 0.2.0\nappVersion: 0.1.0\n' }, /appVersion is 0\.1\.0/],
    ['v0.2.0', { 'compose.yaml': 'image: x/scanfeed:0.1.0}\n' }, /^compose\.yaml is 0\.1\.0, not 0\.2\.0$/m],
    ['v0.2.0', { Dockerfile: 'ARG VERSION=0.1.0\n' }, /^Dockerfile is 0\.1\.0, not 0\.2\.0$/m],
    // npm would refuse it without a tag of its own, after the image was published.
    [
      'v0.2.0-rc.1',
      { 'package.json': '{"version":"0.2.0-rc.1"}' },
      /^"v0\.2\.0-rc\.1" is not a tag such as v0\.1\.0$/m,
    ],
    ['v0.2.0', { 'CHANGELOG.md': '# Changelog\n\n## [0.2.0]\n\n- No date.\n' }, /^CHANGELOG\.md has no section/m],
  ])('refuses %s with %o', async (tag, changed, message) => {
    expect(await run(tag, changed)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) });
  });
});
