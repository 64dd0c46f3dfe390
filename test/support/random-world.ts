import { sql } from 'kysely';
import { forgetFeed } from '../../src/storage/operator/forget-feed.js';
import type { FeedStore } from '../../src/sync/ports/index.js';
import type { Choices } from '../simulation/random-choices.js';
import { entryJson, type Fields } from './entries.js';
import { commitPending } from './pending.js';
import { type StoreSetup, type TestFeed, tables, takeFeed, testFeed } from './store.js';

/** A delivery time that is older than any retention. */
export const OLD = '2020-01-01T00:00:00Z';

/** A document of the type `rechnung`. */
export const documentOf = (value: number) => ({ nummer: `RE-${value}`, betrag: value, positionen: [{ menge: value }] });

/** Events of every kind that change what the views say about a run. */
export class RandomWorld {
  constructor(
    private readonly choices: Choices,
    private readonly setup: StoreSetup,
    private readonly store: FeedStore,
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
    const { setup } = this;
    const { operatorStore } = setup;
    const { deletedRuns, quarantine } = operatorStore;
    return {
      'a full result': async () => {
        const [due] = await setup.rows(sql<{ scanId: string; revision: number }>`
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
        await setup.rows(sql`UPDATE ${tables.quarantine} SET first_seen_at = ${OLD}::timestamptz
          WHERE id = (SELECT min(id) FROM ${tables.quarantine} WHERE payload <> '')`);
        await deletedRuns.purgeQuarantine(365, 10);
      },
      'a deleted entry': () =>
        setup.rows(
          sql`DELETE FROM ${tables.quarantine} WHERE id = (SELECT min(id) FROM ${tables.quarantine} WHERE state = 'open')`,
        ),
      erasure: () => deletedRuns.erase([this.#scanId()]),
      retention: () => deletedRuns.purgeRuns(365, 10),
      'a feed that takes over the runs of another': async () => {
        const former = await this.#take(`former ${feed}`);
        await former.commit([entryJson(this.#version()), entryJson({ ...this.#version(), status: 'odd' })]);
        await commitPending(former, this.#version());
        await this.#take(feed);
        await setup.store.releaseLease(former.lease);
        await forgetFeed(setup.connection, former.lease.feed, feed);
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
