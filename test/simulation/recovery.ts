import { BrokenPromise } from './checked-store.js';
import { POLL_INTERVAL_MS, type World } from './faulty-process.js';
import { HEALTHY, type SimulatedService } from './simulated-service.js';

/** Time after the last fault within which the feed must reach its end again and know its freshness, milliseconds. */
const RECOVERY_MS = 600_000;
/** Time until everything must be stored, milliseconds: pending results may wait for an hour, full passes for their interval. */
const COMPLETE_MS = 4 * 3_600_000;
const STEP_MS = 5_000;
/** Time within which running requests for pages and results end, milliseconds. */
const REQUEST_MS = 10_000;
/** Maximum age of the freshness of a quiet feed, milliseconds: two polls. */
const FRESH_MS = 30_000;

/**
 * Checks the recovery after the faults have stopped: in bounded time the feeds are followed again, also while one organization
 * does not answer the others, and every revision is stored and complete or in quarantine. Entries that are delivered again are
 * neither downloaded nor written again. Throws `BrokenPromise`.
 */
export async function checkRecovery(world: World): Promise<void> {
  const { clock, store, traits } = world;
  await waitForDisturbances(world);
  await checkFairness(world);
  const stoppedAt = clock.monotonic();
  store.misplaced.clear();
  await allReach(world, traits.feeds, stoppedAt, 'did not catch up');
  // A late statement or a failover has moved a feed while pages were already read.
  if (traits.faults.straggler > 0 || traits.losesCommits) store.misplaced.clear();
  await until(world, COMPLETE_MS, () => describeMissing(world));
  await checkRedelivery(world);
  if (store.misplaced.size > 0)
    throw new BrokenPromise('pages were not committed in the order in which they were read');
}

/** Checks that the other feeds are followed while one organization answers no request. */
async function checkFairness(world: World): Promise<void> {
  const { clock, services, traits } = world;
  const [silent, ...others] = traits.feeds;
  const service = services.get(silent as string);
  if (others.length === 0 || service === undefined) return;
  service.state = { ...HEALTHY, unavailable: true };
  await allReach(world, others, clock.monotonic(), `did not catch up while the service of ${silent} does not answer`);
  service.state = HEALTHY;
  await waitForDisturbances(world);
}

async function allReach(world: World, feeds: readonly string[], time: number, failure: string): Promise<void> {
  const { store } = world;
  const behind = () => feeds.find((feed) => store.completeAsOf(feed) < time);
  await until(world, recoveryMs(world), () => (behind() === undefined ? null : `feed ${behind()} ${failure}`));
}

/** Waits for frozen processes and statements, which resume after the faults have stopped and may fail then. */
async function waitForDisturbances(world: World): Promise<void> {
  const { clock, services } = world;
  for (;;) {
    const ends = [...services.values()].map(({ disturbedUntil }) => disturbedUntil);
    const left = Math.max(world.disturbedUntil, ...ends) - clock.monotonic();
    if (left <= 0) return;
    await clock.advance(left);
  }
}

/**
 * Returns the maximum time of the return to the end of the feeds. After circling cursors each page read before costs a poll
 * interval, and a small memory budget, which the feeds share, leads to small pages.
 */
function recoveryMs({ services, traits }: World): number {
  const pageSize = traits.memoryBudget < 10_000 ? 1 : traits.pageSize;
  const pages = [...services.values()].map(({ sequence }) => Math.ceil(sequence.deliveries.length / pageSize));
  return RECOVERY_MS + pages.reduce((sum, count) => sum + count) * POLL_INTERVAL_MS;
}

async function until({ clock, store }: World, timeoutMs: number, missing: () => string | null): Promise<void> {
  const deadline = clock.monotonic() + timeoutMs;
  for (let what = missing(); what !== null; what = missing()) {
    if (clock.monotonic() > deadline) throw new BrokenPromise(what);
    await clock.advance(STEP_MS);
    if (store.broken !== null) throw store.broken;
  }
}

function describeMissing(world: World): string | null {
  for (const [feed, service] of world.services) {
    const missing = describeMissingOf(feed, service, world);
    if (missing !== null) return `feed ${feed}: ${missing}`;
  }
  return null;
}

function describeMissingOf(feed: string, service: SimulatedService, { clock, store, traits }: World): string | null {
  if (service.dueDeliveries > 0) return 'a delivery is still due';
  const [missing] = store.missing(feed, traits.reconcile.intervalMs !== null);
  if (missing !== undefined)
    return `revision ${missing.revision} of ${missing.scanId} is neither stored nor in quarantine`;
  for (const { scanId, pending, feed: of } of store.rows.values()) {
    // Every expected delivery is kept: a later revision is in quarantine, or before the cursor without a pass to find it.
    const isSettled = pending === null || pending === 'newer_revision' || pending === 'test_mode_unknown';
    if (of !== feed || isSettled || service.runs.isUnstorable(scanId)) continue;
    return `${scanId} is still pending: ${pending}`;
  }
  if (!store.hasReadAll(feed)) return 'the history or a requested backfill is not read to its end';
  // The end of the feed is reached at every interval, so a quiet feed stays fresh.
  return store.completeAsOf(feed) >= clock.monotonic() - FRESH_MS ? null : 'the freshness of a quiet feed is too old';
}

/** Lets the feeds deliver everything again, and checks that nothing is downloaded or written again. */
async function checkRedelivery(world: World): Promise<void> {
  const { clock, store, services, traits } = world;
  await clock.advance(REQUEST_MS);
  // These may change: skipped runs that are found now, and results of revisions that were not delivered before.
  const changing = new Set(traits.feeds.flatMap((feed) => store.notStored(feed)).map(({ scanId }) => scanId));
  for (const { scanId, deliveredAt, pending } of store.rows.values())
    if (deliveredAt === null || pending !== null) changing.add(scanId);
  for (const { runs } of services.values())
    for (const scanId of runs.scanIds) if (runs.isUnstorable(scanId)) changing.add(scanId);
  const before = structuredClone(store.rows);
  const downloads = [...services.values()].map((service) => ({ service, before: service.downloads.length }));
  store.written.clear();
  const rewoundAt = clock.monotonic();
  for (const feed of traits.feeds) store.rewind(feed, null);
  await allReach(world, traits.feeds, rewoundAt, 'was not read again');
  // A lower revision that was not delivered before may state the test mode.
  for (const [scanId, { testModeRevision }] of before)
    if (store.rows.get(scanId)?.testModeRevision !== testModeRevision) changing.add(scanId);
  const again = (scanIds: Iterable<string>) => [...scanIds].find((scanId) => !changing.has(scanId));
  const downloaded = again(downloads.flatMap(({ service, before }) => service.downloads.slice(before)));
  const written = again(store.written);
  if (downloaded !== undefined) throw new BrokenPromise(`${downloaded} was downloaded again`);
  // An earlier revision that the cursor had skipped may state a test mode, which is asked for then.
  for (const { scanId, pending, testModeRevision } of store.rows.values())
    if (pending !== null && !changing.has(scanId) && before.get(scanId)?.testModeRevision === testModeRevision)
      throw new BrokenPromise(`${scanId} is pending again: ${pending}`);
  if (written !== undefined) throw new BrokenPromise(`${written} was written again`);
}
