import { describe, expect, it } from 'vitest';
import { ModelFailure } from '../simulation/model-failure.js';
import { ModelService } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { entryJson, pageJson } from '../support/entries.js';
import { startFollowing } from '../support/follow-for.js';
import { rawPage } from '../support/pages.js';
import { VirtualClock } from '../support/virtual-clock.js';

const MINUTE = 60_000;
const PAGE = 10;
const ANSWER_MS = 500;

interface World {
  /** Lead of the clock that sets delivery times over every other, milliseconds; or the answer sets them. */
  readonly deliveredAt: number | 'answer';
  readonly sendsDate: boolean;
}

/** Follows a feed whose service fails until `backlog` runs are waiting, one for every ten seconds or so. */
async function readBacklog({ deliveredAt, sendsDate }: World, known: number, backlog: number, everyMs = 10_000) {
  const clock = new VirtualClock();
  const [service, store] = [new ModelService(), new ModelStore(clock.now, { monotonic: clock.monotonic })];
  /** True delivery times. */
  const delivered: number[] = [];
  let failing = known === 0;
  const deliver = (count: number) => {
    for (let n = 0; n < count; n += 1) delivered.push(clock.now());
  };
  service.readPage = async ({ start, limit }, signal) => {
    await clock.sleep(ANSWER_MS, signal);
    if (failing) throw new ModelFailure('connection');
    const from = 'cursor' in start ? Number(start.cursor) : 0;
    const entries = delivered.slice(from, from + limit).map((at, index) => {
      const shown = deliveredAt === 'answer' ? clock.now() : at + deliveredAt;
      return entryJson({ scanId: `scan-${from + index}`, deliveredAt: new Date(shown).toISOString() });
    });
    const date = sendsDate ? new Date(Math.floor(clock.now() / 1_000) * 1_000) : null;
    return rawPage(pageJson(entries, `${from + entries.length}`), date);
  };
  /** How far each commit is too new, and how old its claim is; milliseconds. */
  const commits: { stored: number; falseMs: number; lagMs: number }[] = [];
  const commit = store.commitPage.bind(store);
  store.commitPage = async (page) => {
    const outcome = await commit(page);
    const completeAsOf = store.feeds.get('default')?.completeAsOf ?? Number.NEGATIVE_INFINITY;
    const firstMissing = delivered[store.rows.size] ?? Number.POSITIVE_INFINITY;
    const falseMs = Math.max(0, completeAsOf - firstMissing);
    commits.push({ stored: store.rows.size, falseMs, lagMs: clock.now() - completeAsOf });
    return outcome;
  };
  deliver(known);
  await clock.advance(MINUTE);
  const stop = startFollowing(clock, { service, store, pageSize: PAGE, maxPageCommits: 1 });
  await clock.advance(MINUTE);
  failing = true;
  for (let n = 0; n < backlog; n += 1) {
    await clock.advance(everyMs);
    deliver(1);
  }
  const before = commits.length;
  failing = false;
  await clock.advance(5 * MINUTE);
  await stop();
  return { rows: store.rows.size, before, commits };
}

describe.each([
  ['with', true],
  ['without', false],
])('a backlog of a service %s a Date header', (_, sendsDate) => {
  it.each([
    ['the same clock', 0],
    ['a clock that is 20 s ahead', 20_000],
    ['a clock that is 20 s behind', -20_000],
    ['a clock of another time zone', 120 * MINUTE],
  ])('is never claimed before it is read when delivery times have %s', async (_clock, deliveredAt) => {
    const { rows, before, commits } = await readBacklog({ deliveredAt, sendsDate }, 1, 100);
    expect(rows).toBe(101);
    expect(commits.filter(({ falseMs }) => falseMs > 0)).toEqual([]);
    const lags = commits.slice(before).map(({ lagMs }) => lagMs);
    expect(lags.at(-1)).toBeLessThan(MINUTE);
    // Before its end is reached, what was read counts.
    const half = commits.slice(before).find(({ stored }) => stored > 50);
    if (deliveredAt <= 20_000) expect(half?.lagMs).toBeLessThan(13 * MINUTE);
  });

  it.each([
    ['the answer sets delivery times', 'answer'],
    ['the clock of delivery times is ahead', 20_000],
  ] as const)('is not claimed during the initial sync when %s', async (_clock, deliveredAt) => {
    const { rows, commits } = await readBacklog({ deliveredAt, sendsDate }, 0, 100);
    expect(rows).toBe(100);
    expect(commits.filter(({ falseMs }) => falseMs > 0)).toEqual([]);
  });

  it('is never claimed before it is read when the answer sets delivery times', async () => {
    // Read more slowly than it was delivered.
    const { rows, commits } = await readBacklog({ deliveredAt: 'answer', sendsDate }, 1, 1_000, 20);
    expect(rows).toBe(1_001);
    expect(commits.filter(({ falseMs }) => falseMs > 0)).toEqual([]);
  });
});
