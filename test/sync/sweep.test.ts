import { expect, it } from 'vitest';
import type { FeedContext } from '../../src/sync/context.js';
import { followFeed } from '../../src/sync/loop.js';
import type { SyncObserver } from '../../src/sync/ports.js';
import { ModelService } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { engineContext, silentObserver } from '../support/engine.js';
import { entryJson, type Fields } from '../support/entries.js';
import { VirtualClock } from '../support/virtual-clock.js';

const HOUR_MS = 3_600_000;

/** A feed that is swept every minute. */
function bench(observer: Partial<SyncObserver> = {}) {
  const clock = new VirtualClock();
  const service = new ModelService();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic, pendingRetryMs: HOUR_MS });
  const deliveredAt = new Date(clock.now() - HOUR_MS).toISOString();
  const entry = (over: Fields) => entryJson({ deliveredAt, ...over });
  const follow = async (ms: number, over: Partial<FeedContext> = {}) => {
    const stop = new AbortController();
    const reconcile = { intervalMs: 60_000, windowMs: 2 * HOUR_MS, fullIntervalMs: null };
    const context = { clock, service, store, observer: silentObserver(observer), reconcile, pendingRetryMs: HOUR_MS };
    const following = followFeed(engineContext({ ...context, ...over }), stop.signal);
    await clock.advance(ms);
    stop.abort();
    await clock.run(following);
  };
  return { clock, service, store, entry, follow };
}

it('counts what the cursor passed by, not what a stored revision lacked', async () => {
  const found: unknown[] = [];
  const { service, store, entry, follow } = bench({ reconciled: (counts) => found.push(counts) });
  service.feed.push(
    entry({ scanId: 'corrected' }),
    entry({ scanId: 'truncated', data: undefined, resultTruncated: true }),
    entry({ scanId: 'gone' }),
  );
  await follow(50_000);
  expect(store.rows.get('truncated')?.pending).not.toBeNull();
  // Behind the cursor, which is their number.
  service.feed.splice(
    0,
    3,
    entry({ scanId: 'late' }),
    entry({ scanId: 'truncated' }),
    entry({ scanId: 'corrected', revision: 2 }),
  );
  await follow(120_000);
  expect(store.rows.get('truncated')?.pending).toBeNull();
  expect(found).toEqual([{ first: 1, later: 1 }]);
});
