import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import * as status from '../../../src/cli/commands/status.js';
import { createErrorRecorder } from '../../../src/daemon/error-recorder.js';
import type { Outage } from '../../../src/observability/log/failure-log.js';
import { createErrorWriter, type ErrorRecord } from '../../../src/storage/feeds/recent-errors.js';
import { runCommand } from '../../support/command.js';
import { gate } from '../../support/observed.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);

beforeEach(async () => {
  await bench.rows(sql`DELETE FROM ${tables.feeds}`);
  await bench.takeFeed();
});

const outage = (over: Partial<Outage> = {}): Outage => ({
  ...{ stage: 'feed', number: 1, kind: 'timeout', message: 'no complete answer; try again', failures: 3 },
  ...{ since: '2026-01-01T00:00:00.000Z', begunAt: 0, failedAt: 60_000, nextTryAt: 61_000, endedAt: null },
  ...over,
});

type StoreNotes = (notes: readonly ErrorRecord[]) => Promise<void>;

const storeNotes: StoreNotes = (notes) => createErrorWriter(bench.connection, 'default', 'pod-1/7/abc')(notes);

/** At a time of the process; `slept` are the pauses, which take no time, but for the patience at the end. */
function notesAt(monotonic: number, store = storeNotes, isPatient = true) {
  const slept: number[] = [];
  let onSleep = () => {};
  const clock = {
    monotonic: () => monotonic,
    sleep: async (ms: number, signal: AbortSignal) => {
      slept.push(ms);
      onSleep();
      if (ms === 500 && isPatient) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await new Promise(setImmediate);
    },
  };
  const notes = createErrorRecorder(store, clock);
  const whenSleeping = (what: () => void) => {
    onSleep = what;
  };
  return { notes, slept, whenSleeping };
}

async function noted(outages: readonly Outage[], at = 90_000): Promise<void> {
  const { notes } = notesAt(at);
  for (const one of outages) notes.note(one);
  await written(outages.length);
}

/** Waits until the rows are there: by the event of asking again, not by time. */
async function written(count: number): Promise<void> {
  for (;;) {
    const [row] = await bench.rows<{ count: number }>(sql`SELECT count(*)::int AS count FROM ${tables.recentErrors}`);
    if (row !== undefined && row.count >= count) return;
  }
}

const recentErrors = async () => (await bench.operatorStore.readFeedReports())[0]?.recentErrors ?? [];
const shown = async (columns?: number) =>
  (await runCommand(status, ['status'], { env: { DATABASE_URL: given.url }, ...(columns && { columns }) })).out;

describe('the last errors', () => {
  it('are shown with since when, for how long, how often and what helps', async () => {
    expect(await shown()).toMatch(/^Last errors: +none$/m);
    await noted([
      outage({ endedAt: 75_000 }),
      outage({ number: 2, begunAt: 80_000, stage: 'lease', kind: 'connection', failures: 1, nextTryAt: 91_000 }),
    ]);
    const [latest, first] = await recentErrors();
    expect(latest).toMatchObject({ stage: 'lease', goesOn: true, endedAt: null, failures: 1, holder: 'pod-1/7/abc' });
    expect(first).toMatchObject({ stage: 'feed', kind: 'timeout', goesOn: false, failures: 3 });
    const lasted = Date.parse(first?.endedAt ?? '') - Date.parse(first?.since ?? '');
    expect(lasted).toBeGreaterThan(74_990);
    expect(lasted).toBeLessThan(75_010);
    const out = await shown();
    expect(out).toMatch(
      /^Last errors: +\S+Z, for \S+ s and going on, 1 failure: lease connection: no complete answer;/m,
    );
    expect(out).toMatch(/^ {17}\S+Z, over after 75\.0 s, 3 failures: feed timeout: no complete answer; try again$/m);
    expect((await shown(80)).split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  it('stand in one row an outage, however often it is told', async () => {
    await noted([outage()]);
    const { notes } = notesAt(200_000);
    notes.note(outage({ failures: 4, kind: 'http_401', failedAt: 150_000 }));
    notes.note(outage({ failures: 5, kind: 'http_401', failedAt: 190_000, endedAt: 199_000 }));
    await notes.close();
    expect(await recentErrors()).toMatchObject([{ kind: 'http_401', failures: 5, goesOn: false }]);
  });

  it('begin with what goes on, however much was over since, and forget nothing of it', async () => {
    await noted([outage({ stage: 'lease', kind: 'schema', nextTryAt: 91_000 })]);
    for (let number = 2; number <= 41; number += 20) {
      const { notes } = notesAt(90_000);
      for (let n = number; n < number + 20; n += 1) {
        notes.note(outage({ number: n, begunAt: 1_000 * n, failedAt: 1_000 * n, endedAt: 1_000 * n + 500 }));
      }
      await notes.close();
    }
    expect(await recentErrors()).toHaveLength(20);
    expect((await recentErrors()).map(({ goesOn }) => goesOn).slice(0, 2)).toEqual([true, false]);
    expect(await shown()).toMatch(/^Last errors: +\S+Z, for \S+ (s|min) and going on, 3 failures: lease schema/m);
  });

  it('of a process that is gone do not go on', async () => {
    await noted([outage()], 61_000 + 11 * 60_000);
    expect(await recentErrors()).toMatchObject([{ goesOn: false, endedAt: null }]);
    expect(await shown()).toMatch(/^Last errors: +\S+Z, for at least 60\.0 s, then its process was gone, 3 failures/m);
  });

  it('of a process that was stopped are over', async () => {
    const { notes } = notesAt(90_000);
    notes.note(outage());
    await written(1);
    expect(await recentErrors()).toMatchObject([{ goesOn: true }]);
    await notes.close();
    expect(await recentErrors()).toMatchObject([{ goesOn: false, endedAt: expect.any(String) }]);
  });

  it('are few, go with their feed, and hold whatever text an error has', async () => {
    for (let number = 1; number <= 45; number += 15) {
      const some = Array.from({ length: 15 }, (_, n) => outage({ number: number + n, begunAt: (number + n) * 100 }));
      const { notes } = notesAt(90_000);
      for (const one of some) notes.note(one);
      await notes.close();
    }
    const [row] = await bench.rows<{ count: number }>(sql`SELECT count(*)::int AS count FROM ${tables.recentErrors}`);
    expect(row?.count).toBeLessThan(45);
    expect(await recentErrors()).toHaveLength(20);
    const { notes } = notesAt(90_000);
    notes.note(outage({ number: 99, begunAt: 80_000, message: `a\0b\ud800c\u001b[2J${'x'.repeat(5_000)}` }));
    await notes.close();
    const [latest] = await recentErrors();
    expect(latest?.message).toMatch(/^a\ufffdb\ufffdc/);
    expect(latest?.message.length).toBeLessThan(1_100);
    expect(await shown()).not.toContain('\u001b');
    await bench.rows(sql`DELETE FROM ${tables.feeds}`);
    expect(await bench.rows(sql`SELECT FROM ${tables.recentErrors}`)).toEqual([]);
    notes.note(outage());
    await notes.close();
    expect(await bench.rows(sql`SELECT FROM ${tables.recentErrors}`)).toEqual([]);
  });
});

describe('notes of recentErrors', () => {
  it('are kept while the database is away, and written once it is back', async () => {
    let away = true;
    const { notes, slept, whenSleeping } = notesAt(90_000, async (noted) => {
      if (away) throw new Error('away');
      await storeNotes(noted);
    });
    const triedTwice = gate();
    whenSleeping(() => slept.length === 3 && triedTwice.open());
    notes.note(outage());
    await triedTwice.opened;
    expect(slept).toEqual([1_000, 10_000, 20_000]);
    away = false;
    await written(1);
    expect(await recentErrors()).toHaveLength(1);
  });

  it('do not keep a process from ending while the database hangs', async () => {
    const { notes, slept } = notesAt(90_000, () => new Promise(() => {}), false);
    notes.note(outage());
    await notes.close();
    expect(slept).toContain(500);
  });
});
