import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import * as status from '../../../src/cli/commands/status.js';
import { systemClock } from '../../../src/core/clock.js';
import { createErrorRecorder } from '../../../src/daemon/error-recorder.js';
import type { Outage } from '../../../src/observability/log/failure-log.js';
import { createErrorWriter, type ErrorRecord } from '../../../src/storage/operator/recent-errors.js';
import { runCommand } from '../../support/command.js';
import { gate } from '../../support/observed.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);

beforeEach(async () => {
  await setup.rows(sql`DELETE FROM ${tables.feeds}`);
  await setup.takeFeed();
});

const outage = (over: Partial<Outage> = {}): Outage => ({
  ...{ stage: 'feed', number: 1, kind: 'timeout', message: 'no complete answer; try again', failures: 3 },
  ...{ held: false, runbook: 'ScanfeedErrorRatioHigh' },
  ...{ since: '2026-01-01T00:00:00.000Z', begunAt: 0, failedAt: 60_000, nextTryAt: 61_000, endedAt: null },
  ...over,
});

type WriteRecords = (records: readonly ErrorRecord[]) => Promise<void>;

const writeRecords: WriteRecords = (records) => createErrorWriter(setup.connection, 'default', 'pod-1/7/abc')(records);

/** Creates a recorder at a time of the process. Its pauses, `slept`, take no time, except the timeout of `close` if `isPatient`. */
function recorderAt(monotonic: number, write = writeRecords, isPatient = true) {
  const slept: number[] = [];
  let onSleep = () => {};
  const clock = {
    ...systemClock,
    monotonic: () => monotonic,
    sleep: async (ms: number, signal: AbortSignal) => {
      slept.push(ms);
      onSleep();
      if (ms === 500 && isPatient) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await new Promise(setImmediate);
    },
  };
  const recorder = createErrorRecorder(write, clock);
  const whenSleeping = (what: () => void) => {
    onSleep = what;
  };
  return { recorder, slept, whenSleeping };
}

async function record(outages: readonly Outage[], at = 90_000): Promise<void> {
  const { recorder } = recorderAt(at);
  for (const one of outages) recorder.record(one);
  await written(outages.length);
}

/** Waits until the rows are stored: asks again, without a pause. */
async function written(count: number): Promise<void> {
  for (;;) {
    const [row] = await setup.rows<{ count: number }>(sql`SELECT count(*)::int AS count FROM ${tables.recentErrors}`);
    if (row !== undefined && row.count >= count) return;
  }
}

const recentErrors = async () => (await setup.operatorStore.readFeedReports())[0]?.recentErrors ?? [];
const shown = async (columns?: number) =>
  (await runCommand(status, ['status'], { env: { DATABASE_URL: given.url }, ...(columns && { columns }) })).out;

describe('recent errors', () => {
  it('show start, duration, number of failures and remedy when status prints them', async () => {
    expect(await shown()).toMatch(/^Last errors: +none$/m);
    await record([
      outage({ endedAt: 75_000 }),
      outage({ number: 2, begunAt: 80_000, stage: 'lease', kind: 'connection', failures: 1, nextTryAt: 690_000 }),
    ]);
    const [latest, first] = await recentErrors();
    expect(latest).toMatchObject({ stage: 'lease', ongoing: true, endedAt: null, failures: 1, holder: 'pod-1/7/abc' });
    expect(first).toMatchObject({ stage: 'feed', kind: 'timeout', ongoing: false, failures: 3 });
    const lasted = Date.parse(first?.endedAt ?? '') - Date.parse(first?.since ?? '');
    expect(lasted).toBeGreaterThan(74_990);
    expect(lasted).toBeLessThan(75_010);
    const out = await shown();
    expect(out).toMatch(
      /^Failing: +since \S+Z, for \S+ s, 1 failure, next attempt in 10 min: lease connection: no complete answer; try again \(runbook ScanfeedErrorRatioHigh\)$/m,
    );
    expect(out).toMatch(
      /^Last errors: +\S+Z, lasted 75\.0 s, 3 failures: feed timeout: no complete answer; try again$/m,
    );
    expect((await shown(80)).split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  it('have one row per outage when it is recorded several times', async () => {
    await record([outage()]);
    const { recorder } = recorderAt(200_000);
    recorder.record(outage({ failures: 4, kind: 'http_401', failedAt: 150_000 }));
    recorder.record(outage({ failures: 5, kind: 'http_401', failedAt: 190_000, endedAt: 199_000 }));
    await recorder.close();
    expect(await recentErrors()).toMatchObject([{ kind: 'http_401', failures: 5, ongoing: false }]);
  });

  it('begin with ongoing outages when many others have ended since', async () => {
    await record([outage({ stage: 'lease', kind: 'schema', nextTryAt: 91_000, held: true })]);
    expect(await shown()).not.toMatch(/errors: +none/);
    for (let number = 2; number <= 41; number += 20) {
      const { recorder } = recorderAt(90_000);
      for (let n = number; n < number + 20; n += 1) {
        recorder.record(outage({ number: n, begunAt: 1_000 * n, failedAt: 1_000 * n, endedAt: 1_000 * n + 500 }));
      }
      await recorder.close();
    }
    expect(await recentErrors()).toHaveLength(20);
    expect((await recentErrors()).map(({ ongoing }) => ongoing).slice(0, 2)).toEqual([true, false]);
    expect(await shown()).toMatch(
      /^Action required: since \S+Z, for \S+ (s|min), 3 failures, next attempt .*: lease schema/m,
    );
  });

  it('are not ongoing when their process is gone', async () => {
    await record([outage()], 61_000 + 11 * 60_000);
    expect(await recentErrors()).toMatchObject([{ ongoing: false, endedAt: null }]);
    expect(await shown()).toMatch(
      /^Last errors: +\S+Z, lasted at least 60\.0 s, until its process was gone, 3 failures/m,
    );
  });

  it('end when their process stops', async () => {
    const { recorder } = recorderAt(90_000);
    recorder.record(outage());
    await written(1);
    expect(await recentErrors()).toMatchObject([{ ongoing: true }]);
    await recorder.close();
    expect(await recentErrors()).toMatchObject([{ ongoing: false, endedAt: expect.any(String) }]);
  });

  it('are limited in number and length when there are many, and deleted when their feed is deleted', async () => {
    for (let number = 1; number <= 45; number += 15) {
      const some = Array.from({ length: 15 }, (_, n) => outage({ number: number + n, begunAt: (number + n) * 100 }));
      const { recorder } = recorderAt(90_000);
      for (const one of some) recorder.record(one);
      await recorder.close();
    }
    const [row] = await setup.rows<{ count: number }>(sql`SELECT count(*)::int AS count FROM ${tables.recentErrors}`);
    expect(row?.count).toBeLessThan(45);
    expect(await recentErrors()).toHaveLength(20);
    const { recorder } = recorderAt(90_000);
    recorder.record(outage({ number: 99, begunAt: 80_000, message: `a\0b\ud800c\u001b[2J${'x'.repeat(5_000)}` }));
    await recorder.close();
    const [latest] = await recentErrors();
    expect(latest?.message).toMatch(/^a\ufffdb\ufffdc/);
    expect(latest?.message.length).toBeLessThan(1_100);
    expect(await shown()).not.toContain('\u001b');
    await setup.rows(sql`DELETE FROM ${tables.feeds}`);
    expect(await setup.rows(sql`SELECT FROM ${tables.recentErrors}`)).toEqual([]);
    recorder.record(outage());
    await recorder.close();
    expect(await setup.rows(sql`SELECT FROM ${tables.recentErrors}`)).toEqual([]);
  });
});

describe('the error recorder', () => {
  it('retries its writes when the database was down', async () => {
    let isDown = true;
    const { recorder, slept, whenSleeping } = recorderAt(90_000, async (records) => {
      if (isDown) throw new Error('down');
      await writeRecords(records);
    });
    const triedTwice = gate();
    whenSleeping(() => slept.length === 3 && triedTwice.open());
    recorder.record(outage());
    await triedTwice.opened;
    expect(slept).toEqual([1_000, 10_000, 20_000]);
    isDown = false;
    await written(1);
    expect(await recentErrors()).toHaveLength(1);
  });

  it('writes at once when an outage ends, since the database may accept writes again', async () => {
    let isDown = true;
    const [retrying, written] = [gate(), gate()];
    const sleep = async (ms: number, signal: AbortSignal) => {
      if (ms <= 1_000) return;
      const woken = new Promise((resolve) => signal.addEventListener('abort', resolve));
      retrying.open();
      await woken;
    };
    const write = async (records: readonly ErrorRecord[]) => {
      if (isDown) throw new Error('down');
      expect(records).toMatchObject([{ failures: 4, endedMs: 0 }]);
      written.open();
    };
    const recorder = createErrorRecorder(write, { ...systemClock, monotonic: () => 90_000, sleep });
    recorder.record(outage());
    await retrying.opened;
    isDown = false;
    recorder.record(outage({ failures: 4, endedAt: 90_000 }));
    await written.opened;
  });

  it('writes at once when an outage ended during a write that fails', async () => {
    const [writing, ended, written] = [gate(), gate(), gate()];
    const slept: number[] = [];
    const sleep = async (ms: number, signal: AbortSignal) => {
      slept.push(ms);
      if (ms > 1_000 && !signal.aborted) await new Promise(() => {});
    };
    const write = async ([record]: readonly ErrorRecord[]) => {
      if (record?.endedMs === 0) return written.open();
      writing.open();
      await ended.opened;
      throw new Error('down');
    };
    const recorder = createErrorRecorder(write, { ...systemClock, monotonic: () => 90_000, sleep });
    recorder.record(outage());
    await writing.opened;
    recorder.record(outage({ endedAt: 90_000 }));
    ended.open();
    await written.opened;
    expect(slept).toEqual([1_000, 10_000]);
  });

  it('stops waiting when the database hangs at the end of the process', async () => {
    const { recorder, slept } = recorderAt(90_000, () => new Promise(() => {}), false);
    recorder.record(outage());
    await recorder.close();
    expect(slept).toContain(500);
  });
});
