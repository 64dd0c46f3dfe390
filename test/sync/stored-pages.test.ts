import { expect, test } from 'vitest';
import type { StoredPage } from '../../src/sync/ports/index.js';
import { ModelService } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { silentObserver } from '../support/engine.js';
import { entryJson } from '../support/entries.js';
import { followFor } from '../support/follow-for.js';
import { VirtualClock } from '../support/virtual-clock.js';

const POLL_MS = 30;
const RESULT_MS = 200;
const COMMIT_MS = 40;

test('reports when each page was polled, received, completed and committed', async () => {
  const clock = new VirtualClock();
  const service = new ModelService({
    before: (operation) => clock.pause(operation === 'run' ? RESULT_MS : POLL_MS),
  });
  const store = new ModelStore(clock.monotonic);
  const commitPage = store.commitPage.bind(store);
  store.commitPage = async (commit) => {
    await clock.pause(COMMIT_MS);
    return commitPage(commit);
  };
  service.feed.push(
    entryJson({ scanId: 'scan-1' }),
    entryJson({ scanId: 'scan-2', data: undefined, resultTruncated: true }),
  );
  service.runs.set('scan-2', entryJson({ scanId: 'scan-2' }));
  const stored: StoredPage[] = [];
  const observer = silentObserver({ pageStored: (page) => void stored.push(page) });
  await followFor(2_000, clock, { service, store, observer });

  const [first] = stored;
  expect(first).toMatchObject({ reading: 'feed', polls: [{ items: 2 }], counts: { inserted: 2 } });
  const [timing] = first?.polls ?? [];
  const { polledAt = 0, receivedAt = 0, loadedAt = 0 } = timing ?? {};
  expect(receivedAt - polledAt).toBe(POLL_MS);
  expect(loadedAt - receivedAt).toBe(RESULT_MS);
  expect((first?.committedAt ?? 0) - (first?.commitBegunAt ?? 0)).toBe(COMMIT_MS);
  expect(first?.commitBegunAt).toBeGreaterThanOrEqual(loadedAt);
});
