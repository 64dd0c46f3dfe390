import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { checkRun } from '../../../src/sync/page/check-entries.js';
import type { RawRun } from '../../../src/sync/ports/index.js';
import { entryJson } from '../../support/entries.js';
import { rawRun } from '../../support/pages.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Checks an answer. Returns the entry, and a weak hold on what was parsed. */
function checkOne(answer: RawRun) {
  return { entry: checkRun(answer), parsed: new WeakRef(answer.run) };
}

it('releases the parsed answer, since the memory budget does not count it', async () => {
  const { entry, parsed } = checkOne(rawRun(entryJson({ neu: 1 })));
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  expect(parsed.deref()).toBeUndefined();
  expect(entry?.payload().length).toBeGreaterThan(0);
});
