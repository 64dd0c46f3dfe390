import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { troubleOf } from '../../src/outcome/trouble.js';
import { createStore } from '../../src/storage/store.js';
import type { FeedStore, SweepState } from '../../src/sync/ports.js';
import { type ModelFeed, ModelStore } from '../simulation/model-store.js';
import { TEST_SCHEMA, tables, useStore } from '../support/store.js';
import { HOUR_MS, type Operation, StoreHistory } from '../support/store-history.js';
import { hoursAgo, modelState, postgresState } from '../support/store-state.js';

const COUNT = Number(process.env.MODEL_STORE_HISTORIES ?? 1_000);
const FIRST = Number(process.env.MODEL_STORE_FIRST_SEED ?? 1);
const OPERATIONS = 20;
/** At once; each on a connection of its own. */
const CONCURRENCY = 4;

const bench = useStore();

/** Both stores begin a pending result's pauses alike: due at once in half of the histories. */
const pendingRetryOf = (seed: number) => (seed % 2 === 0 ? -1_000 : HOUR_MS);

describe('the model of the store that the simulation runs on', () => {
  it(`does as PostgreSQL does in ${COUNT} random histories, from seed ${FIRST} on`, async () => {
    const seeds = Array.from({ length: COUNT }, (_, n) => FIRST + n);
    const models = new Map<number, ModelStore>();
    const work = async () => {
      for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) models.set(seed, await live(seed));
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    expect(models.size).toBe(COUNT);
    await expectSameRows(models);
    await expectSameFeeds(models);
  }, 600_000);
});

/** Lives through one history on both stores; each answer must be the same. */
async function live(seed: number): Promise<ModelStore> {
  // Never the same moment twice, as PostgreSQL's clock.
  let time = 0;
  const now = () => {
    time = Math.max(time + 0.001, Date.now());
    return time;
  };
  const settings = { leaseTtlMs: HOUR_MS, pendingRetryMs: pendingRetryOf(seed), keptDays: null, monotonic: () => 0 };
  const model = new ModelStore(now, settings);
  const real = createStore(bench.database, { schema: TEST_SCHEMA, ...settings });
  const history = new StoreHistory(seed, seed * 10);
  const sweeps = new Map<string, string>();
  const calls: Operation[] = [];
  for (let call = 0; call < OPERATIONS; call += 1) {
    const operation = history.next();
    calls.push(operation);
    const answers = [await perform(model, modelled(operation, model, sweeps)), await perform(real, operation)] as const;
    const [expected, found] = answers.map((answer) => comparable(answer));
    // What is said of a difference costs more than the call: only where there is one.
    if (!isDeepStrictEqual(found, expected)) expect(found, describeCalls(seed, calls)).toEqual(expected);
    if (operation.name === 'readSweeps') pairSweeps(answers as SweepPair, sweeps);
    history.learn(operation, answers[1]);
  }
  return model;
}

type SweepPair = readonly [model: readonly SweepState[], real: readonly SweepState[]];

/** Notes the model's name of each of PostgreSQL's sweeps. */
function pairSweeps([model, real]: SweepPair, names: Map<string, string>): void {
  for (const { kind, id } of real) names.set(id, model.find((sweep) => sweep.kind === kind)?.id ?? '');
}

/** Each store names sweeps and backfills, and dates the end of a backfill, by itself. */
function modelled(operation: Operation, { feeds }: ModelStore, sweeps: ReadonlyMap<string, string>): Operation {
  if (operation.name === 'commitSweep') {
    const [commit] = operation.args;
    return { ...operation, args: [{ ...commit, id: sweeps.get(commit.id) ?? '' }] };
  }
  if (operation.name !== 'commitBackfill') return operation;
  const [commit] = operation.args;
  const { id = '', until = commit.until } = feeds.get(commit.lease.feed)?.backfills[0] ?? {};
  return { ...operation, args: [{ ...commit, id, until }] };
}

async function perform(store: FeedStore, { name, args }: Operation): Promise<unknown> {
  try {
    return await (store[name] as (...args: unknown[]) => Promise<unknown>).apply(store, [...args]);
  } catch (error) {
    return { refused: troubleOf(error).kind };
  }
}

/** An answer without what differs by nature: order where none is promised, moments but for their hour. */
function comparable(value: unknown, key = ''): unknown {
  if (value === undefined) return null;
  if (value instanceof Date) return hoursAgo(value);
  if (Array.isArray(value)) {
    const items = value.map((item) => comparable(item));
    const ordered = key === 'cursors';
    return ordered ? items : items.sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
  }
  if (typeof value === 'number' && /Ms$/.test(key)) return hoursAgo(value, 0);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'readAt' && name !== 'id')
      .map(([name, member]) => [name, comparable(member, name)]),
  );
}

const again = (seed: number) => `again: MODEL_STORE_FIRST_SEED=${seed} MODEL_STORE_HISTORIES=1`;

function describeCalls(seed: number, calls: readonly Operation[]): string {
  const told = calls.map(({ name, args }) => `${name}(${JSON.stringify(args).slice(1, -1)})`);
  return `PostgreSQL differs from the model in seed ${seed} (${again(seed)}), after:\n${told.join('\n')}\n`;
}

async function expectSameRows(models: ReadonlyMap<number, ModelStore>): Promise<void> {
  const found = await postgresState(bench.rows, 'history-%');
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
  const rows = await bench.rows(
    sql<FeedRow>`
      SELECT name, cursor, lease_holder AS holder, lease_epoch::int AS epoch, keep_history AS "keepHistory", filters,
        start_since AS "startSince", resume_since AS "resumeSince", last_delivered_at AS "lastDeliveredAt",
        read_up_to AS "readUpTo",
        extract(epoch FROM complete_from)::double precision * 1000 AS "completeFrom",
        data_complete_as_of AS "completeAsOf", reconciled_as_of AS "reconciledAsOf", widened_at AS "widenedAt",
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
  const { cursor, holder, epoch, keepHistory, filters, startSince, resumeSince, lastDeliveredAt, readUpTo } = feed;
  const { completeFrom, completeAsOf, reconciledAsOf, widenedAt, endReachedAt, lastPollAt, lastCommitAt } = feed;
  const times = {
    startSince,
    resumeSince,
    lastDeliveredAt,
    readUpTo,
    completeFrom,
    completeAsOf,
    reconciledAsOf,
    widenedAt,
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
