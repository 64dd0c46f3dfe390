import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/core/clock.js';
import { watchSchema } from '../../../src/daemon/schema-watch.js';
import { createReadiness } from '../../../src/observability/admin/readiness.js';
import type { Outage } from '../../../src/observability/log/failure-log.js';
import { createProcesses } from '../../../src/storage/feeds/processes.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { FeedLeases } from '../../../src/sync/lease/feed-leases.js';
import { limitConcurrency } from '../../../src/sync/waiting/limit-concurrency.js';
import { processLease } from '../../support/engine.js';
import { recordingLogger } from '../../support/observed.js';
import { useDatabase } from '../../support/postgres/index.js';
import { settingsWith } from '../../support/settings.js';
import { MIGRATED, useStore } from '../../support/store.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

const provided = useDatabase(MIGRATED);
const setup = useStore(provided);
const untilAborted: Clock['sleep'] = (_, signal) =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** @param sleep called before a setup that failed is tried again; by default that waits until the stop */
const context = (sleep: Clock['sleep'] = untilAborted, monotonic = () => 0, onPreparing = () => {}) => ({
  database: setup.database,
  leaseDatabase: setup.database,
  limitDirect: limitConcurrency(1),
  join: async () => {},
  usableMs: () => 10_000,
  clock: { ...systemClock, monotonic, sleep },
  onPreparing,
  migrations: readMigrations,
});

describe('the schema watch', () => {
  const outages: Outage[] = [];

  /** Runs the setup of a daemon with this time zone, and returns what it logs about it. */
  async function setUp(zone: string, sleep?: Clock['sleep'], signal = new AbortController().signal) {
    const { database: settings } = settingsWith({ DATABASE_URL: provided.url, SCANFEED_REPORTING_TIME_ZONE: zone });
    const { logger, lines } = recordingLogger();
    const onOutage = (outage: Outage) => outages.push(outage);
    const schema = watchSchema(settings, { ...context(sleep), onOutage }, createReadiness(), logger, signal);
    await schema.ready(signal);
    await schema.finished();
    return lines.flatMap(({ message, fields }) =>
      fields.stage === 'time zone' || fields.timeZone ? [[message, fields.timeZone ?? fields.kind]] : [],
    );
  }

  it('sets the reporting time zone once when it is new', async () => {
    expect(await setUp('Europe/Berlin')).toEqual([['set the reporting time zone', 'Europe/Berlin']]);
    expect(await setUp('Europe/Berlin')).toEqual([]);
  });

  it('is ready, logs the failure and tries again when the time zone cannot be set', async () => {
    await setup.rows(sql`ALTER TABLE ${sql.id('scanfeed', 'report_settings')} RENAME TO hidden`);
    const restore: Clock['sleep'] = async (ms, signal) => {
      if (ms !== 60_000) return untilAborted(ms, signal);
      await setup.rows(sql`ALTER TABLE ${sql.id('scanfeed', 'hidden')} RENAME TO report_settings`);
    };
    expect(await setUp('Asia/Tokyo', restore)).toEqual([
      ['holding: action required', 'schema'],
      ['set the reporting time zone', 'Asia/Tokyo'],
      ['recovered', 'schema'],
    ]);
  });

  it('names the stage that fails and the setting while the server does not know the time zone', async () => {
    outages.length = 0;
    const stop = new AbortController();
    // Node.js knows this zone; it was removed from the database of time zones in 2020.
    const end: Clock['sleep'] = async (ms, signal) => (ms === 60_000 ? stop.abort() : untilAborted(ms, signal));
    const lines = await setUp('US/Pacific-New', end, stop.signal);
    expect(lines).toEqual([['holding: action required', 'time_zone']]);
    expect(outages).toMatchObject([
      { stage: 'time zone', kind: 'time_zone', message: expect.stringContaining('SCANFEED_REPORTING_TIME_ZONE') },
    ]);
  });
});

it('calls back regularly while a migration is running, and not afterwards', async () => {
  const { database: settings } = settingsWith({ DATABASE_URL: provided.url, SCANFEED_DATABASE_SCHEMA: 'watched' });
  const { signal } = new AbortController();
  const sleeps: (() => void)[] = [];
  const sleep: Clock['sleep'] = (_, over) =>
    new Promise((resolve) => {
      sleeps.push(resolve);
      over.addEventListener('abort', () => resolve(), { once: true });
    });
  let calls = 0;
  const count = () => {
    calls += 1;
  };
  const schema = watchSchema(
    settings,
    context(sleep, () => 0, count),
    createReadiness(),
    recordingLogger().logger,
    signal,
  );
  const ready = schema.ready(signal);
  sleeps[0]?.();
  await Promise.resolve();
  await expect.poll(() => calls).toBeGreaterThanOrEqual(1);
  await ready;
  const after = calls;
  for (const end of sleeps) end();
  await Promise.resolve();
  expect(calls).toBe(after);
});

it('no feed can be read any more when a newer release has migrated the schema', async () => {
  const { database: settings } = settingsWith({ DATABASE_URL: provided.url });
  const { signal } = new AbortController();
  let now = 0;
  const { logger } = recordingLogger();
  const schema = watchSchema(
    settings,
    context(untilAborted, () => now),
    createReadiness(),
    logger,
    signal,
  );
  const process = processLease({ clock: systemClock, store: createProcesses(setup.connection), ttlMs: 300 });
  const leases = new FeedLeases(process, { name: 'scanfeed', store: setup.store, ...schema });
  const outcome = async () => {
    leases.readEarly();
    const read = await leases.nextRead(signal);
    return read !== null && 'error' in read ? { isUsable: read.isUsable } : 'read';
  };
  const checkAgain = () => {
    now += 10_000;
  };
  leases.follow('one');
  expect(await outcome()).toBe('read');
  const migrations = sql.id('scanfeed', 'migrations');
  await setup.rows(sql`INSERT INTO ${migrations} (version, name, works_from) VALUES (9999, 'newer', 9999)`);
  expect(await outcome()).toBe('read'); // a schema is checked every 10 s
  checkAgain();
  expect(await outcome()).toEqual({ isUsable: false });
  await setup.rows(sql`DELETE FROM ${migrations} WHERE version = 9999`);
  expect(await outcome()).toBe('read');
  leases.unfollow('one');
});

describe('the schema watch, when the setup of the reader role hangs', () => {
  let proxy: TcpProxy;
  beforeEach(async () => {
    proxy = await TcpProxy.to(provided.url);
    proxy.set({ blackhole: true });
  });
  afterEach(() => proxy.close());

  const failures = (lines: ReturnType<typeof recordingLogger>['lines']) =>
    lines.flatMap(({ fields }) => (fields.stage === undefined ? [] : [fields]));

  /** Makes the schema ready while the connection of the reader role setup gets no answer. */
  async function readyDuringSetup() {
    const { database: settings } = settingsWith({
      DATABASE_URL: provided.url,
      SCANFEED_MIGRATION_DATABASE_URL: proxy.urlOf(provided.url),
      SCANFEED_READER_ROLE: `scanfeed_reader_${process.pid}`, // it is missing
    });
    const { logger, lines, until } = recordingLogger();
    const readiness = createReadiness();
    const stop = new AbortController();
    const schema = watchSchema(settings, context(), readiness, logger, stop.signal);
    await schema.ready(stop.signal);
    expect(failures(lines)).toEqual([]);
    expect(readiness.check().ready).toBe(true);
    await expect.poll(() => proxy.connections[0]?.lost.client).toBeGreaterThan(0);
    return { schema, stop, lines, until };
  }

  it('is ready, and logs the failure when the connection is lost', async () => {
    const { schema, stop, lines, until } = await readyDuringSetup();
    proxy.cutAll('reset');
    await until('failed, retrying');
    expect(failures(lines)).toMatchObject([{ stage: 'reader role', kind: 'connection' }]);
    stop.abort();
    await schema.finished();
  });

  it('closes that connection without a log line when the daemon stops', async () => {
    const { schema, stop, lines } = await readyDuringSetup();
    stop.abort();
    await schema.finished();
    await proxy.connections[0]?.closed;
    expect(failures(lines)).toEqual([]);
  });
});
