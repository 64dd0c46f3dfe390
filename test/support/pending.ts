import { batchOf, draftPage, withPending } from '../../src/sync/page-draft.js';
import { entryJson, type Fields, pageJson } from './entries.js';
import { rawPage } from './pages.js';
import type { TestFeed } from './store.js';

/** Commits a truncated entry whose result could not be loaded. */
export async function commitPending(feed: TestFeed, over: Fields): Promise<void> {
  const draft = draftPage(rawPage(pageJson([entryJson({ data: undefined, resultTruncated: true, ...over })])));
  const entries = draft.entries.map((entry) => withPending(entry, 'not_loaded'));
  await feed.commit([], { batch: batchOf(entries, draft) });
}
