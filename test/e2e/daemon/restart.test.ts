import { expect, test } from 'vitest';
import { eventually } from '../../support/program/daemon.js';
import { type DaemonDatabase, useProgram } from '../../support/program/setup.js';

const setup = useProgram();

/** Waits for the last statement of a killed process, which the server may still commit. */
async function untilDisconnected(database: DaemonDatabase): Promise<void> {
  const connected = () =>
    database.query(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'scanfeed'`);
  await eventually(async () => (await connected()).length).toBe(0);
}

interface Progress {
  readonly cursor: string;
  readonly runs: number;
}

async function progress(database: DaemonDatabase): Promise<Progress | undefined> {
  const [row] = await database.query<Progress>(
    'SELECT cursor, (SELECT count(*)::int FROM scanfeed.runs) AS runs FROM scanfeed.feeds',
  );
  return row;
}

test.each([
  ['kill -9', 'SIGKILL'],
  ['SIGTERM', 'SIGTERM'],
] as const)(
  'continues at its cursor after %s in the middle of a history, without losses or duplicates',
  async (_, signal) => {
    const service = await setup.startService();
    const database = await setup.createDatabase();
    const delivered = service.deliver(600);
    const env = { ...setup.environment(service, database), SCANFEED_PAGE_LIMIT: '10' };

    let before: Progress | undefined;
    for (const pages of [12, 14, 16]) {
      const asked = service.asked.length;
      const begun = service.requests.next();
      const far = service.requests.next(() => service.asked.length >= asked + pages);
      const daemon = setup.daemon(env);
      if (before !== undefined) expect((await begun).query).toMatchObject({ cursor: before.cursor });
      expect((await begun).query).not.toHaveProperty('since');
      await far;
      await daemon.stop(signal);
      await untilDisconnected(database);
      before = await progress(database);
      expect(before?.runs).toBeLessThan(600);
    }

    const last = setup.daemon(env);
    await last.catchesUp();
    const metrics = await last.metrics();
    expect(metrics.get('scanfeed_runs_total{outcome="inserted"}')).toBe(600 - (before?.runs ?? 0));
    expect(metrics.get('scanfeed_runs_total{outcome="unchanged"}')).toBe(0);
    const rows = await database.query<{ scan_id: string }>('SELECT scan_id FROM scanfeed.runs');
    expect(rows.map((row) => row.scan_id).sort()).toEqual([...delivered].sort());
    expect(await database.query('SELECT FROM scanfeed.run_history')).toEqual([]);
  },
);

/** Longer than any test, so that it never expires here. Metrics are refreshed three times per period. */
const ENDLESS_LEASE = { SCANFEED_LEASE_TTL: '1h' };

const lease = (database: DaemonDatabase) =>
  database.query<{ epoch: number; holder: string }>(
    'SELECT lease_epoch::int AS epoch, lease_holder AS holder FROM scanfeed.feeds',
  );

test('after kill -9 a process restarted on the same host continues without waiting for the lease to expire', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.deliver(5);
  const env = { ...setup.environment(service, database), ...ENDLESS_LEASE };
  const killed = setup.daemon(env);
  await killed.reaches({ caughtUp: true, runsWritten: 5 });
  await killed.stop('SIGKILL');
  service.deliver(5);
  const restarted = setup.daemon(env);
  await restarted.reaches({ caughtUp: true, runsWritten: 5 });
  expect(await lease(database)).toMatchObject([{ epoch: 2 }]);
});

test('a process on the same host waits for the lease of one that is stopped but alive', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const env = { ...setup.environment(service, database), ...ENDLESS_LEASE };
  const stopped = setup.daemon(env);
  await stopped.reaches({ caughtUp: true });
  const before = await lease(database);
  stopped.signal('SIGSTOP');
  const waiting = setup.daemon(env);
  await waiting.reaches({ role: 'standby', leaseHolder: before[0]?.holder ?? '' });
  // Logged at its second look, which follows the first attempt.
  await waiting.logs('standing by: another process leads');
  expect(await lease(database)).toEqual(before);
  stopped.signal('SIGCONT');
});
