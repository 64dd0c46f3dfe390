import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { createStore } from '../../../src/storage/store.js';
import { type Choices, choicesFrom } from '../../simulation/random-choices.js';
import { createCopier, readContents } from '../../support/copy-of-reports.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { commitPending } from '../../support/pending.js';
import { useDatabase } from '../../support/postgres/index.js';
import { emptyReports, refresh } from '../../support/reports.js';
import {
  MIGRATED,
  openTestDatabase,
  TEST_SCHEMA,
  type TestFeed,
  tables,
  takeFeed,
  testFeed,
  useStore,
} from '../../support/store.js';
import { cases } from '../../support/thorough.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);
const FEEDS = ['north', 'south'];
const OLD = '2020-01-01T00:00:00Z';
const STEPS = 40;

beforeEach(() => emptyReports(bench));

/** Creates the typed views that the copier reads. */
async function buildViews(): Promise<void> {
  const feed = await bench.takeFeed({ name: 'first' });
  await feed.commit([entryJson({ scanId: 'first', data: documentOf(1) })]);
  await refresh(bench);
}

const documentOf = (value: number) => ({ nummer: `RE-${value}`, betrag: value, positionen: [{ menge: value }] });

describe('a copy that follows the changes', () => {
  it('equals the views after each of many random events', async () => {
    for (let seed = 1; seed <= cases(4, 60); seed += 1) {
      await emptyReports(bench);
      await buildViews();
      const choices = choicesFrom(seed);
      const copier = createCopier(bench.database);
      const world = new RandomWorld(choices, bench.store, 8);
      const done: string[] = [];
      for (let step = 0; step < STEPS; step += 1) {
        done.push(await world.nextEvent(choices.pick(FEEDS)));
        while (await copier.poll(choices.between(1, 3)));
        expect(copier.contents(), `seed ${seed}: ${done.join(', ')}`).toEqual(await readContents(bench.database));
      }
    }
  });

  it('equals the views in the end when several feeds write at the same time', async () => {
    await buildViews();
    const databases = [...FEEDS, 'reader'].map(() => openTestDatabase(given.url, 1));
    const [reader = bench.database] = databases.slice(-1);
    const copier = createCopier(reader);
    let writing = FEEDS.length;
    const write = async (name: string, index: number) => {
      const settings = { schema: TEST_SCHEMA, leaseTtlMs: 30_000, pendingRetryMs: 30_000, keptDays: null };
      const store = createStore(databases[index] ?? bench.database, {
        ...settings,
        monotonic: () => performance.now(),
      });
      const world = new RandomWorld(choicesFrom(1_000 + index), store, 30);
      for (let step = 0; step < 3 * STEPS; step += 1) await world.nextEvent(name);
      writing -= 1;
    };
    const read = async () => {
      let polls = 0;
      while (writing > 0) {
        await copier.poll(3);
        polls += 1;
      }
      while (await copier.poll(3));
      return polls;
    };
    const [polls] = await Promise.all([read(), ...FEEDS.map(write)]);
    expect(copier.contents()).toEqual(await readContents(bench.database));
    expect(polls).toBeGreaterThan(10);
    for (const database of databases) await database.close();
  });
});

describe('changes', () => {
  const change = async (scanId: string) => {
    const [row] = await bench.rows(sql`
      SELECT change, document_type_slug AS type, productive FROM scanfeed_reporting.changes WHERE scan_id = ${scanId}`);
    return row;
  };

  it('says what happened to a run, and whether it is productive', async () => {
    const feed = await bench.takeFeed();
    const entry = (over: Fields = {}) => entryJson({ scanId: 'a', ...over });
    await feed.commit([entry()]);
    expect(await change('a')).toEqual({ change: 'stored', type: 'rechnung', productive: true });
    await feed.commit([entry({ revision: 2 })]);
    expect(await change('a')).toEqual({ change: 'updated', type: 'rechnung', productive: true });
    await feed.commit([entry({ revision: 3, status: 'odd' })]);
    expect(await change('a')).toEqual({ change: 'withdrawn', type: 'rechnung', productive: false });
    await feed.commit([entry({ revision: 4, documentType: { slug: 'beleg', name: 'Beleg' } })]);
    expect(await change('a')).toEqual({ change: 'updated', type: 'beleg', productive: true });
    await feed.commit([entry({ revision: 5, status: 'failed', data: undefined })]);
    expect(await change('a')).toEqual({ change: 'withdrawn', type: 'rechnung', productive: false });
    await bench.operatorStore.deletedRuns.erase(['a']);
    expect(await change('a')).toEqual({ change: 'deleted', type: null, productive: false });
  });

  it('has one row for a run that expired and was stored again', async () => {
    const feed = await bench.takeFeed();
    await feed.commit([entryJson({ scanId: 'a', deliveredAt: OLD, completedAt: OLD })]);
    await bench.operatorStore.deletedRuns.purgeRuns(365, 10);
    await feed.commit([entryJson({ scanId: 'a', revision: 2 })]);
    expect(await change('a')).toMatchObject({ change: 'stored' });
    expect(await bench.rows(sql`SELECT FROM scanfeed_reporting.changes WHERE scan_id = 'a'`)).toHaveLength(1);
  });

  it('lists nothing again when a page is delivered again', async () => {
    const feed = await bench.takeFeed();
    const entries = [entryJson({ scanId: 'a' }), entryJson({ scanId: 'a', revision: 2, status: 'odd' })];
    await feed.commit(entries);
    const numbers = () => bench.rows(sql`SELECT change_seq FROM scanfeed_reporting.changes`);
    const before = await numbers();
    await feed.commit(entries);
    expect(await numbers()).toEqual(before);
  });
});

/** Events of every kind that change what the views say about a run. */
class RandomWorld {
  constructor(
    private readonly choices: Choices,
    private readonly store: ReturnType<typeof createStore>,
    private readonly scans: number,
  ) {}

  /** Makes something happen, as the feed if a feed does it. Returns its name. */
  async nextEvent(feed: string): Promise<string> {
    const events = { ...this.#deliveries(feed), ...this.#operations(feed) };
    const name = this.choices.pick(Object.keys(events)) as keyof typeof events;
    await events[name]();
    return name;
  }

  #deliveries(feed: string) {
    const { choices } = this;
    const some = (over: () => Fields) => () =>
      this.#commit(
        feed,
        Array.from({ length: choices.between(1, 3) }, () => entryJson({ ...this.#version(), ...over() })),
      );
    return {
      'a run': some(() => ({})),
      'a failed run': some(() => ({ status: 'failed', data: undefined, failureReason: 'x', error: 'x' })),
      'a run without data': some(() => ({ data: choices.pick([null, []]) })),
      'a run of the test mode': some(() => ({ partnerTestMode: true })),
      'a run of another type': some(() => ({ documentType: { slug: 'beleg', name: 'Beleg' } })),
      'an old run': some(() => ({ deliveredAt: OLD, completedAt: OLD })),
      'an unusable revision': some(() => ({ status: 'odd' })),
      'an unreadable revision': some(() => ({ revision: 0, fileName: `${choices.random()}` })),
      'a pending result': async () => commitPending(await this.#take(feed), this.#version()),
    };
  }

  #operations(feed: string) {
    const { operatorStore } = bench;
    const { deletedRuns, quarantine } = operatorStore;
    return {
      'a full result': async () => {
        const [due] = await bench.rows(sql<{ scanId: string; revision: number }>`
          SELECT scan_id AS "scanId", revision FROM ${tables.runs} WHERE result_state = 'pending' LIMIT 1`);
        if (due !== undefined)
          await this.#commit(feed, [entryJson({ ...this.#version(), ...due, data: documentOf(7) })]);
      },
      'a discarded entry': async () => {
        await quarantine.discard(feed, (await quarantine.openIds(feed)).slice(0, 1));
      },
      'a settled entry': async () => {
        const [id] = await quarantine.openIds(feed);
        if (id !== undefined) await quarantine.settle(feed, id, 'replayed');
      },
      'an expired entry': async () => {
        await bench.rows(sql`UPDATE ${tables.quarantine} SET first_seen_at = ${OLD}::timestamptz
          WHERE id = (SELECT min(id) FROM ${tables.quarantine} WHERE payload <> '')`);
        await deletedRuns.purgeQuarantine(365, 10);
      },
      'a deleted entry': () =>
        bench.rows(
          sql`DELETE FROM ${tables.quarantine} WHERE id = (SELECT min(id) FROM ${tables.quarantine} WHERE state = 'open')`,
        ),
      erasure: () => deletedRuns.erase([this.#scanId()]),
      retention: () => deletedRuns.purgeRuns(365, 10),
      'a feed that takes over the pending results of another': async () => {
        await bench.rows(sql`UPDATE ${tables.feeds} SET lease_expires_at = NULL, last_commit_at = ${OLD}::timestamptz,
          created_at = ${OLD}::timestamptz WHERE name <> ${feed}`);
        await this.store.adoptPending((await this.#take(feed)).lease);
      },
    };
  }

  #scanId(): string {
    return `scan-${this.choices.between(1, this.scans)}`;
  }

  #version(): Fields {
    const { choices } = this;
    return { scanId: this.#scanId(), revision: choices.between(1, 4), data: documentOf(choices.between(1, 3)) };
  }

  async #commit(name: string, entries: readonly string[]): Promise<void> {
    const feed = await this.#take(name);
    await feed.commit(entries);
  }

  /** Takes the feed again each time: an erasure has raised its epoch. */
  async #take(name: string): Promise<TestFeed> {
    return takeFeed(this.store, testFeed({ name }), name);
  }
}
