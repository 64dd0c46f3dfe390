import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { classifyError } from '../../src/core/errors.js';
import { createProcesses } from '../../src/storage/feeds/processes.js';
import { createStore } from '../../src/storage/store.js';
import type { Pass, StoredPosition } from '../../src/sync/ports/index.js';
import { type ModelFeed, ModelStore } from '../simulation/model-store.js';
import { TEST_SCHEMA, tables, useStore } from '../support/store.js';
import { HOUR_MS, type Operation, StoreHistory, type TestedStore } from '../support/store-history.js';
import { hoursAgo, modelState, postgresState } from '../support/store-state.js';
import { cases } from '../support/thorough.js';

const COUNT = Number(process.env.MODEL_STORE_HISTORIES ?? cases(60, 1_000));
const FIRST = Number(process.env.MODEL_STORE_FIRST_SEED ?? 1);
const OPERATIONS = 20;
const SHIFT_MS = HOUR_MS / 4;
/** At once; each on a connection of its own. */
const CONCURRENCY = 4;

const setup = useStore();

/** Both stores use the same first pause of a pending result: none in half of the histories. */
const pendingRetryOf = (seed: number) => (seed % 2 === 0 ? -1_000 : HOUR_MS);

describe('the model of the store that the simulation runs on', () => {
  it(`behaves like PostgreSQL in ${COUNT} random histories, from seed ${FIRST} on`, async () => {
    const seeds = Array.from({ length: COUNT }, (_, n) => FIRST + n);
    const models = new Map<number, ModelStore>();
    const work = async () => {
      for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) models.set(seed, await live(seed));
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    expect(models.size).toBe(COUNT);
    await expectSameRows(models);
    await expectSameFeeds(models);
    await expectSamePasses(models);
  });
});

/** Runs one history on both stores; all their answers must be equal. */
async function live(seed: number): Promise<ModelStore> {
  // Never returns the same time twice, like the clock of PostgreSQL.
  let time = 0;
  const now = () => {
    time = Math.max(time + 0.001, Date.now());
    return time;
  };
  const settings = { pendingRetryMs: pendingRetryOf(seed), keptDays: null, monotonic: () => 0 };
  const model = new ModelStore(now, settings);
  const history = new StoreHistory(seed, seed * 10);
  const processes = createProcesses(setup.connection);
  const real: TestedStore = {
    ...createStore(setup.database, { schema: TEST_SCHEMA, ...settings }),
    ...processes,
    renewProcess: async (renewal) => {
      const found = await processes.renewProcess(renewal);
      return { ...found, living: new Map([...found.living].filter(([name]) => history.holders.includes(name))) };
    },
  };
  const pairs: Pairs = { passes: new Map(), origins: new Map() };
  const calls: Operation[] = [];
  for (let call = 0; call < OPERATIONS; call += 1) {
    const operation = history.next();
    calls.push(operation);
    const answers = [await perform(model, modelled(operation, pairs)), await perform(real, operation)] as const;
    const [expected, found] = answers.map((answer) => comparable(answer));
    // Describing a difference costs more than the call, so it is done only if there is one.
    if (!isDeepStrictEqual(found, expected)) expect(found, describeCalls(seed, calls)).toEqual(expected);
    if (operation.name === 'nextPass' || operation.name === 'beginPass')
      pairPasses(answers as [Pass | null, Pass | null], pairs);
    if (operation.name === 'readPosition') pairOrigins(answers as [StoredPosition, StoredPosition], pairs);
    history.learn(operation, answers[1]);
    if (operation.name === 'acquireLease') await moveWidening(operation.args[0].name, model, seed);
  }
  return model;
}

/**
 * Moves the time at which filters were just widened, forward in half of the histories: PostgreSQL dates claims some milliseconds too early,
 * so it would depend on the speed of the machine which of the two is later.
 */
async function moveWidening(name: string, model: ModelStore, seed: number): Promise<void> {
  const feed = model.feeds.get(name);
  if (feed === undefined || Math.abs(Date.now() - (feed.filtersWidenedAt ?? 0)) > SHIFT_MS / 2) return;
  const ms = seed % 4 < 2 ? SHIFT_MS : -SHIFT_MS;
  feed.filtersWidenedAt = (feed.filtersWidenedAt ?? 0) + ms;
  await setup.rows(sql`
    UPDATE ${tables.feeds} SET filters_widened_at = filters_widened_at + ${ms} * interval '1 millisecond' WHERE name = ${name}`);
}

/** The same pass in both stores. */
type PassPair = readonly [model: Pass, real: Pass];
/** What each store names itself: passes, and the origins of the model, by what PostgreSQL has named them. */
interface Pairs {
  readonly passes: Map<string, PassPair>;
  readonly origins: Map<string | null, string | null>;
}

function pairPasses([model, real]: readonly [Pass | null, Pass | null], { passes }: Pairs): void {
  if (model !== null && real !== null) passes.set(real.id, [model, real]);
}

function pairOrigins([model, real]: readonly [StoredPosition, StoredPosition], { origins }: Pairs): void {
  origins.set(real.origin, model.origin);
}

/** Each store assigns its own pass ids, its own end of a history and its own origins of cursors. */
function modelled(operation: Operation, { passes, origins }: Pairs): Operation {
  if (operation.name !== 'commitPass') return operation;
  const [commit] = operation.args;
  const pair = passes.get(commit.id);
  if (pair === undefined) throw new Error(`pass ${commit.id} was never read`);
  const [model, real] = pair;
  const until = commit.until.getTime() === real.until.getTime() ? model.until : commit.until;
  const feedOrigin = origins.get(commit.feedOrigin) ?? null;
  return { ...operation, args: [{ ...commit, id: model.id, begunAt: model.begunAt, until, feedOrigin }] };
}

async function perform(store: TestedStore, { name, args }: Operation): Promise<unknown> {
  try {
    return await (store[name] as (...args: unknown[]) => Promise<unknown>).apply(store, [...args]);
  } catch (error) {
    return { refused: classifyError(error).kind };
  }
}

/** Removes expected differences from an answer: order that is not guaranteed, and times except for their hour. */
function comparable(value: unknown, key = ''): unknown {
  if (value === undefined) return null;
  if (value instanceof Date) return hoursAgo(value);
  if (value instanceof Map) return comparable(Object.fromEntries(value));
  if (key === 'origin') return value !== null;
  if (Array.isArray(value)) {
    const items = value.map((item) => comparable(item));
    const ordered = key === 'cursors';
    return ordered ? items : items.sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
  }
  if (typeof value === 'number' && /Ms(Ago)?$/.test(key)) return hoursAgo(value, 0);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'readAt' && name !== 'id')
      .map(([name, member]) => [name, comparable(member, name)]),
  );
}

const again = (seed: number) => `again: MODEL_STORE_FIRST_SEED=${seed} MODEL_STORE_HISTORIES=1`;

function describeCalls(seed: number, calls: readonly Operation[]): string {
  const callLines = calls.map(({ name, args }) => `${name}(${JSON.stringify(args).slice(1, -1)})`);
  return `PostgreSQL differs from the model in seed ${seed} (${again(seed)}), after:\n${callLines.join('\n')}\n`;
}

async function expectSameRows(models: ReadonlyMap<number, ModelStore>): Promise<void> {
  const found = await postgresState(setup.rows, 'history-%');
  const now = Date.now() + 1;
  const expected = [...models.values()].flatMap((model) => [...modelState(model, now)]);
  for (const [name, row] of expected) {
    const seed = Number(/history-(\d+)-/.exec(name)?.[1]);
    expect(found.get(name), `${name} (${again(seed)})`).toEqual(row);
  }
  expect(found.size).toBe(expected.length);
}

interface FeedRow {
  readonly name: string;
  readonly [column: string]: unknown;
}

async function expectSameFeeds(models: ReadonlyMap<number, ModelStore>): Promise<void> {
  const rows = await setup.rows(
    sql<FeedRow>`
      SELECT name, cursor, lease_holder AS holder, lease_epoch::int AS epoch, keep_history AS "keepHistory", filters,
        start_since AS "startSince", resume_since AS "resumeSince", last_delivered_at AS "lastDeliveredAt",
        delivered_up_to AS "deliveredUpTo",
        extract(epoch FROM complete_from)::double precision * 1000 AS "completeFrom",
        data_complete_as_of AS "completeAsOf", reconciled_as_of AS "reconciledAsOf", filters_widened_at AS "filtersWidenedAt",
        end_reached_at AS "endReachedAt", last_poll_at AS "lastPollAt", last_commit_at AS "lastCommitAt"
      FROM ${tables.feeds} WHERE name LIKE 'history-%'`,
  );
  const feeds = new Map([...models.values()].flatMap((model) => [...model.feeds]));
  for (const { name, ...row } of rows) {
    const { completeFrom, filters, ...found } = row;
    const expected = plainFeed(feeds.get(name));
    const seed = Number(/history-(\d+)-/.exec(name)?.[1]);
    expect(
      { ...(comparable(found) as object), filters, completeFrom: hoursAgo(completeFrom as number) },
      `${name} (${again(seed)})`,
    ).toEqual(expected);
  }
  expect(rows.length).toBe(feeds.size);
}

function plainFeed(feed: ModelFeed | undefined): unknown {
  if (feed === undefined) return undefined;
  const { cursor, holder, epoch, keepHistory, filters, startSince, resumeSince, lastDeliveredAt, deliveredUpTo } = feed;
  const { completeFrom, completeAsOf, reconciledAsOf, filtersWidenedAt, endReachedAt, lastPollAt, lastCommitAt } = feed;
  const times = {
    startSince,
    resumeSince,
    lastDeliveredAt,
    deliveredUpTo,
    completeFrom,
    completeAsOf,
    reconciledAsOf,
    filtersWidenedAt,
  };
  return {
    ...{ cursor, holder, epoch, keepHistory, filters },
    ...Object.fromEntries(
      Object.entries({ ...times, endReachedAt, lastPollAt, lastCommitAt }).map(([name, time]) => [
        name,
        hoursAgo(time),
      ]),
    ),
  };
}

/** The passes of each feed, in the order in which they began. */
async function expectSamePasses(models: ReadonlyMap<number, ModelStore>): Promise<void> {
  const rows = await setup.rows(
    sql<{ feed: string; [column: string]: unknown }>`
      SELECT feed, kind, since, until, cursor, delivered_up_to AS "deliveredUpTo", entries::int, stored::int,
        complete_as_of AS "completeAsOf", finished_at AS "finishedAt", cancelled
      FROM ${tables.passes} WHERE feed LIKE 'history-%' ORDER BY id`,
  );
  const found = new Map<string, unknown[]>();
  for (const { feed, ...row } of rows) found.set(feed, [...(found.get(feed) ?? []), plainPass(row)]);
  for (const [name, { passes }] of [...models.values()].flatMap((model) => [...model.feeds])) {
    const seed = Number(/history-(\d+)-/.exec(name)?.[1]);
    const expected = passes.map(({ id: _, begunAt: __, ...pass }) => plainPass(pass));
    expect(found.get(name) ?? [], `passes of ${name} (${again(seed)})`).toEqual(expected);
  }
}

const PASS_TIMES: readonly string[] = ['since', 'until', 'deliveredUpTo', 'completeAsOf', 'finishedAt'];

function plainPass(pass: object): unknown {
  const plain = (name: string, value: unknown) =>
    PASS_TIMES.includes(name) ? hoursAgo(value as number | Date | null) : value;
  return Object.fromEntries(Object.entries(pass).map(([name, value]) => [name, plain(name, value)]));
}
