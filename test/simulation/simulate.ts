import { VirtualClock } from '../support/virtual-clock.js';
import { BrokenPromise, CheckedStore } from './checked-store.js';
import { FaultyProcess, type StoreFaults } from './faulty-process.js';
import { choicesFrom } from './random-choices.js';
import { SimulatedService } from './simulated-service.js';

const NO_FAULTS: StoreFaults = { lost: 0, unknown: 0, straggler: 0, pause: 0 };

/** What a history was made of. */
export interface Course {
  readonly seed: number;
  readonly commits: number;
  readonly kills: number;
  readonly rows: number;
}

/**
 * One history from a seed: replicas of the production engine follow a simulated service into a model of the store, while
 * everything fails that can. At every commit the promises are checked; after the faults have stopped, that all is there.
 * Rejects with a `BrokenPromise`.
 */
export async function simulate(seed: number): Promise<Course> {
  const choices = choicesFrom(seed);
  const clock = new VirtualClock(seed + 1);
  const service = new SimulatedService(clock, choices, {
    movingCursors: choices.chance(0.5),
    corrections: choices.pick(['ahead', 'behind']),
    truncatedShare: choices.pick([0, 0.1, 0.5]),
    badShare: choices.pick([0, 0.1]),
    lateShare: choices.pick([0, 0.1]),
  });
  const store = new CheckedStore(clock.monotonic, service);
  const roughness = choices.pick([0, 0.05, 0.2]);
  let faults: StoreFaults = { lost: roughness, unknown: roughness, straggler: roughness, pause: roughness / 5 };
  service.faultShare = choices.pick([0, 0.1, 0.4]);
  const replicas = choices.between(1, 3);
  // Off in half of the histories: what the sweep finds would hide mistakes of the way before it.
  const sweeping = choices.chance(0.5);
  const reconcile = {
    intervalMs: sweeping ? 60_000 : null,
    windowMs: 3_600_000,
    fullIntervalMs: sweeping ? 3_600_000 : null,
  };
  let processes = 0;
  let kills = 0;
  const start = () =>
    new FaultyProcess(`process-${++processes}`, clock, choices, service, store, () => faults, reconcile);
  const running = Array.from({ length: replicas }, start);

  const runThrough = async () => {
    for (let step = 0; step < 25; step += 1) {
      for (let event = choices.between(0, 6); event > 0; event -= 1) service.happen();
      await clock.advance(choices.pick([10, 1_000, 20_000]));
      if (choices.chance(0.2)) {
        const victim = choices.between(0, replicas - 1);
        running[victim]?.kill();
        running[victim] = start();
        kills += 1;
      }
    }
    faults = NO_FAULTS;
    service.faultShare = 0;
    await settle(clock, store, sweeping ? service.newest() : service.newestAhead());
    await clock.run(Promise.all(running.map((process) => process.stop())));
  };
  await runThrough();
  if (store.broken !== null) throw store.broken;
  return { seed, commits: store.commits, kills, rows: store.rows.size };
}

const PATIENCE_MS = 3 * 3_600_000;

/** Liveness: in bounded time after the last fault, every expected revision is stored and complete. */
async function settle(clock: VirtualClock, store: CheckedStore, expected: ReadonlyMap<string, number>): Promise<void> {
  const deadline = clock.monotonic() + PATIENCE_MS;
  for (let missing = firstMissing(expected, store); missing !== null; missing = firstMissing(expected, store)) {
    if (clock.monotonic() > deadline) throw new BrokenPromise(missing);
    await clock.advance(30_000);
  }
}

function firstMissing(expected: ReadonlyMap<string, number>, store: CheckedStore): string | null {
  for (const [scanId, revision] of expected) {
    const row = store.rows.get(scanId);
    if ((row?.revision ?? 0) < revision) return `${scanId} stopped at revision ${row?.revision}, not ${revision}`;
    if (row?.pending !== null) return `${scanId} is still pending: ${row?.pending}`;
  }
  return store.feeds.get('default')?.endReachedAt ? null : 'the end of the feed was not reached';
}
