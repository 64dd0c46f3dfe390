import { expect, it } from 'vitest';
import { checkRun } from '../../../src/sync/page/check-entries.js';
import type { RawRun } from '../../../src/sync/ports/index.js';
import { isCollected } from '../../support/collect-garbage.js';
import { entryJson } from '../../support/entries.js';
import { rawRun } from '../../support/pages.js';

/** Checks an answer. Returns the entry, and a weak hold on what was parsed. */
function checkOne(answer: RawRun) {
  return { entry: checkRun(answer), parsed: new WeakRef(answer.run) };
}

it('releases the parsed answer, since the memory budget does not count it', async () => {
  const { entry, parsed } = checkOne(rawRun(entryJson({ neu: 1 })));
  expect(await isCollected(parsed)).toBe(true);
  expect(entry?.payload().length).toBeGreaterThan(0);
});
