import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { askUser } from '../../src/cli/context/ask-user.js';
import { EXIT } from '../../src/cli/context/exit.js';

/** Asks at a terminal where these keys are pressed; null: where the input ends. */
async function asked(keys: string | null) {
  const [input, output] = [new PassThrough(), new PassThrough().setEncoding('utf8')];
  const answer = askUser('Go on? [y/N] ', { input, output, terminal: true }).catch((error: unknown) => error);
  if (keys === null) input.end();
  else input.write(keys);
  return { answer: await answer, shown: String(output.read()) };
}

test('askUser returns the line that was entered', async () => {
  const { answer, shown } = await asked('yes\r');
  expect(answer).toBe('yes');
  expect(shown).toContain('Go on? [y/N] ');
});

test.each([
  ['Ctrl-D', '\u0004'],
  ['the end of the input', null],
])('a question that %s ends has an empty answer, and a line of its own', async (_, keys) => {
  const { answer, shown } = await asked(keys);
  expect(answer).toBe('');
  expect(shown).toMatch(/\n$/);
});

test('askUser rejects as interrupted when Ctrl-C is pressed, and ends the line', async () => {
  const { answer, shown } = await asked('\u0003');
  expect(answer).toMatchObject({ message: 'interrupted; nothing was changed', exitCode: EXIT.interrupted });
  expect(shown).toMatch(/\n$/);
});
