import { batchOf, checkEntries, withPending } from '../../src/sync/page/check-entries.js';
import type { PageCommit } from '../../src/sync/ports/index.js';
import { entryJson, type Fields, pageJson } from './entries.js';
import { rawPage } from './pages.js';
import type { TestFeed } from './store.js';

/** A truncated entry whose result could not be loaded. */
export function pendingBatch(over: Fields): Pick<PageCommit, 'batch'> {
  const checked = checkEntries(rawPage(pageJson([entryJson({ data: undefined, resultTruncated: true, ...over })])));
  const entries = checked.entries.map((entry) => withPending(entry, 'not_loaded'));
  return { batch: batchOf(entries) };
}

export async function commitPending(feed: TestFeed, over: Fields): Promise<void> {
  await feed.commit([], pendingBatch(over));
}
