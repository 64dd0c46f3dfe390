import { nextTick, nextTurn, VirtualClock } from '../support/virtual-clock.js';
import { CheckedStore } from './checked-store.js';
import { type Coverage, noCoverage } from './coverage.js';
import { FaultyProcess, type World } from './faulty-process.js';
import { type Choices, choicesFrom } from './random-choices.js';
import { checkRecovery } from './recovery.js';
import { HEALTHY, type ServiceState, SimulatedService } from './simulated-service.js';
import { chooseTraits, NO_FAULTS } from './traits.js';

const STEPS = 15;
const STEPS_WITHOUT_RECOVERY = 30;

/**
 * Simulates one history from a seed: replicas of the production engine follow a simulated service into a model store while
 * faults of all kinds happen. Checks the promises at every commit, and that everything is stored after the faults have
 * stopped. Resolves with the coverage; rejects with a `BrokenPromise`.
 */
export async function simulate(seed: number): Promise<Coverage> {
  const choices = choicesFrom(seed);
  await nextTurn();
  const clock = new VirtualClock(seed + 1, nextTick);
  const traits = chooseTraits(choices, clock.now());
  const coverage = noCoverage();
  const serviceOf = (feed: string) =>
    new SimulatedService(feed, clock, choices, traits.service, traits.markdown, coverage);
  const services = new Map(traits.feeds.map((feed) => [feed, serviceOf(feed)]));
  const all = [...services.values()];
  const store = new CheckedStore(clock, services, traits, coverage);
  const world: World = {
    clock,
    choices,
    services,
    store,
    traits,
    coverage,
    faults: NO_FAULTS,
    databaseUnavailable: false,
    disturbedUntil: 0,
    failovers: 0,
  };
  for (let run = choices.pick([0, 3, 12]); run > 0; run -= 1) {
    await clock.advance(choices.between(0, 60_000));
    choices.pick(all).addRevision();
  }
  await clock.advance(traits.pastMs - clock.monotonic());

  const replicas = new Replicas(world);
  world.faults = traits.faults;
  for (const service of all) service.faultShare = traits.faults.request;
  for (let step = traits.faultsNeverStop ? STEPS_WITHOUT_RECOVERY : STEPS; step > 0; step -= 1) {
    for (let event = choices.between(0, 6); event > 0; event -= 1) choices.pick(all).addRevision();
    changeLastingFaults(world, replicas);
    if (traits.losesCommits) await loseCommits(world);
    await clock.advance(choices.pick([10, 1_000, 5_000, 20_000]));
    if (store.broken !== null) throw store.broken;
  }
  if (traits.faultsNeverStop) replicas.killAll();
  else {
    Object.assign(world, { faults: NO_FAULTS, databaseUnavailable: false });
    for (const service of all) Object.assign(service, { faultShare: 0, state: HEALTHY });
    await checkRecovery(world);
    await clock.run(replicas.stopAll());
    if ([...store.feeds.values()].some(({ holder }) => holder !== null)) throw new Error('a lease was not released');
  }
  if (store.broken !== null) throw store.broken;
  return { ...coverage, histories: 1, feeds: services.size, rows: store.rows.size };
}

/** The replicas of the daemon; a killed one is restarted after up to 20 s. */
class Replicas {
  #started = 0;
  #over = false;
  readonly #running: FaultyProcess[];

  constructor(private readonly world: World) {
    this.#running = Array.from({ length: world.traits.replicas }, (_, index) => this.#start(index));
  }

  kill(): void {
    const index = this.world.choices.between(0, this.#running.length - 1);
    this.#running[index]?.kill();
  }

  killAll(): void {
    this.#over = true;
    for (const process of this.#running) process.kill();
  }

  async stopAll(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#running.map((process) => process.stop()));
  }

  #start(index: number): FaultyProcess {
    this.#started += 1;
    // The same name, as in a restarted container, or a new one.
    const name = this.world.choices.chance(0.5) ? `replica-${index}` : `process-${this.#started}`;
    return new FaultyProcess(name, this.world, () => this.#restart(index));
  }

  #restart(index: number): void {
    const { clock, choices, coverage } = this.world;
    if (!this.#over) coverage.crashes += 1;
    void clock.pause(choices.between(0, 20_000)).then(() => {
      if (!this.#over) this.#running[index] = this.#start(index);
    });
  }
}

/** Starts or ends faults that last longer than one call. */
function changeLastingFaults(world: World, replicas: Replicas): void {
  const { choices, services, store } = world;
  const [feed, service] = choices.pick([...services]);
  if (choices.chance(0.1)) replicas.kill();
  if (choices.chance(0.5)) service.state = choices.chance(0.5) ? HEALTHY : chooseServiceState(choices);
  world.databaseUnavailable = choices.chance(0.05);
  if (choices.chance(0.05)) service.cursors.forgetBeyond(choices.pick([-2, service.sequence.before(choices.random())]));
  const ago = (ms: number) => new Date(world.clock.now() - ms);
  if (choices.chance(0.05)) {
    store.requestBackfill(ago(choices.between(0, 1_200_000)), ago(choices.between(-600_000, 600_000)), feed);
  }
  if (choices.chance(0.03)) {
    const earlier = store.feeds.get(feed)?.earlier.map(({ cursor }) => cursor) ?? [];
    store.rewind(feed, choices.pick([null, ...earlier]));
  }
}

/** With a probability of 0.3, loses the last commits, like a failover to an asynchronous standby. */
async function loseCommits(world: World): Promise<void> {
  const { clock, choices, store } = world;
  if (!choices.chance(0.3)) return;
  const restore = store.snapshot();
  await clock.advance(choices.pick([10, 1_000, 5_000, 20_000]));
  world.failovers += 1;
  restore();
}

function chooseServiceState(choices: Choices): ServiceState {
  return choices.pick([
    { ...HEALTHY, cursors: 'empty' as const },
    { ...HEALTHY, cursors: 'stalled' as const },
    { ...HEALTHY, cursors: 'circling' as const },
    { ...HEALTHY, unavailable: true },
    { ...HEALTHY, refusing: true },
  ]);
}
