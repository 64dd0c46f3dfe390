import { expect, it } from 'vitest';
import { httpStatusError } from '../../../src/service/errors/status-errors.js';
import { obeyRetryAfter } from '../../../src/service/http/obey-retry-after.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { NO_COUNTS } from '../../support/counts.js';
import { silentObserver } from '../../support/engine.js';
import { entryJson } from '../../support/entries.js';
import { startFollowing } from '../../support/follow-for.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const COUNT = 12;
const UNKNOWN = { readAt: 0, dataCompleteAsOf: null, lagMs: null };

/** So many pending results; all but the last, which is not found, can be loaded by now. */
async function retried(commits: (scanId: string | undefined, clock: VirtualClock) => Promise<void>) {
  const clock = new VirtualClock();
  const service = new ModelService();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const failures: string[] = [];
  const commitResults = store.commitResults.bind(store);
  store.commitResults = async (lease, batch, quarantine) => {
    await commits(batch[0]?.run.scanId, clock);
    return commitResults(lease, batch, quarantine);
  };
  const observer = silentObserver({ failed: (stage, error) => failures.push(`${stage} ${(error as Error).message}`) });
  for (let n = 0; n < COUNT; n += 1) {
    service.feed.push(entryJson({ scanId: `scan-${n}`, data: undefined, resultTruncated: true }));
  }
  const stop = startFollowing(clock, { service, store, observer, maxResultCommits: 3 });
  await clock.advance(25_000);
  for (let n = 0; n < COUNT - 1; n += 1) service.runs.set(`scan-${n}`, entryJson({ scanId: `scan-${n}` }));
  await clock.advance(45_000);
  await stop();
  const pending = [...store.rows].filter(([, row]) => row.pending !== null).map(([scanId]) => scanId);
  return { store, failures, pending };
}

it('commits few pending results at once, so that connections are left for other statements', async () => {
  let [now, most] = [0, 0];
  const { pending } = await retried(async (_, clock) => {
    now += 1;
    most = Math.max(most, now);
    await clock.pause(1_000);
    now -= 1;
  });
  expect(most).toBe(3);
  expect(pending).toEqual([`scan-${COUNT - 1}`]);
});

it('stores the failed attempts of others once when a result cannot be stored', async () => {
  const { store, failures, pending } = await retried(async (scanId) => {
    if (scanId === 'scan-0') throw new ModelFailure('deadline', 'retry');
  });
  expect(new Set(failures)).toEqual(new Set(['result deadline']));
  expect(pending).toEqual(['scan-0', `scan-${COUNT - 1}`]);
  expect(store.rows.get('scan-0')?.attempts).toBe(0);
  expect(store.rows.get(`scan-${COUNT - 1}`)?.attempts).toBe(1);
});

it('postpones a result that contradicts its feed entry, and keeps the run pending', async () => {
  const clock = new VirtualClock();
  const service = new ModelService();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const outcomes: string[] = [];
  const observer = silentObserver({ truncated: (outcome, count) => count > 0 && outcomes.push(outcome) });
  service.feed.push(entryJson({ scanId: 'scan-0', data: undefined, resultTruncated: true }));
  const stop = startFollowing(clock, { service, store, observer });
  await clock.advance(25_000);
  const requests = service.requests.length;
  const tries = () => service.requests.slice(requests).filter((request) => request === 'scan-0').length;
  service.runs.set('scan-0', entryJson({ scanId: 'scan-0', documentType: { slug: 'lieferschein', name: null } }));
  await clock.advance(180_000);
  expect(store.rows.get('scan-0')).toMatchObject({ pending: 'invalid_result', data: null, slug: 'rechnung' });
  expect(tries()).toBe(store.rows.get('scan-0')?.attempts);
  expect(tries()).toBeLessThan(5);
  expect(outcomes).not.toContain('resolved');
  await stop();
});

it('postpones a result that the database does not store, so that it does not displace others', async () => {
  const clock = new VirtualClock();
  const service = new ModelService();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const outcomes: string[] = [];
  const observer = silentObserver({ truncated: (outcome, count) => count > 0 && outcomes.push(outcome) });
  service.feed.push(entryJson({ scanId: 'old', data: undefined, resultTruncated: true }));
  const stop = startFollowing(clock, { service, store, observer });
  await clock.advance(25_000);
  // The run is past the retention, but not deleted yet.
  store.commitResults = async () => ({
    kind: 'committed',
    counts: { ...NO_COUNTS, stale: 1 },
    asOf: UNKNOWN,
    endClaimed: false,
  });
  service.requests.length = 0;
  service.runs.set('old', entryJson({ scanId: 'old' }));
  await clock.advance(180_000);
  const tries = service.requests.filter((request) => request === 'old').length;
  expect(store.rows.get('old')).toMatchObject({ pending: 'not_loaded', attempts: tries });
  expect(tries).toBeGreaterThan(0);
  expect(tries).toBeLessThan(5);
  expect(outcomes).not.toContain('resolved');
  await stop();
});

it('sends no request for a result while the service asks for a pause, and commits pages meanwhile', async () => {
  const clock = new VirtualClock();
  const sent: number[] = [];
  const HOUR = 3_600_000;
  const service = new ModelService({
    before: async (operation) => {
      if (operation === 'run') sent.push(clock.monotonic());
      const leftMs = HOUR - clock.monotonic();
      if (operation === 'run' && leftMs > 0) throw httpStatusError({ operation, status: 429, retryAfterMs: leftMs });
    },
  });
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const deliver = (scanId: string) => {
    service.feed.push(entryJson({ scanId, data: undefined, resultTruncated: true }));
    service.runs.set(scanId, entryJson({ scanId }));
  };
  for (let n = 0; n < COUNT; n += 1) deliver(`scan-${n}`);
  const stop = startFollowing(clock, { service: obeyRetryAfter(service, clock), store, pollIntervalMs: 60_000 });
  for (let minute = 10; minute < 60; minute += 10) {
    deliver(`later-${minute}`);
    await clock.advance(590_000);
    expect(store.rows.get(`later-${minute}`)?.pending).toBe('not_loaded');
  }
  expect(new Set(sent)).toEqual(new Set([sent[0]]));
  await clock.advance(2 * HOUR);
  expect([...store.rows].filter(([, row]) => row.pending !== null)).toEqual([]);
  await stop();
});
