import { expect, test } from 'vitest';
import { type DaemonDatabase, useProgram } from '../../support/program/bench.js';
import { eventually } from '../../support/program/daemon.js';

const bench = useProgram();

/** A killed process leaves its statement to the server, which may still commit it. */
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
  'after %s in the middle of a history it goes on at its cursor; nothing is lost, nothing comes twice',
  async (_, signal) => {
    const service = await bench.startService();
    const database = await bench.createDatabase();
    const delivered = service.deliver(600);
    const env = { ...bench.environment(service, database), SCANFEED_PAGE_LIMIT: '10' };

    let before: Progress | undefined;
    for (const pages of [12, 14, 16]) {
      const asked = service.asked.length;
      const begun = service.requests.next();
      const far = service.requests.next(() => service.asked.length >= asked + pages);
      const daemon = bench.daemon(env);
      if (before !== undefined) expect((await begun).query).toMatchObject({ cursor: before.cursor });
      expect((await begun).query).not.toHaveProperty('since');
      await far;
      await daemon.stop(signal);
      await untilDisconnected(database);
      before = await progress(database);
      expect(before?.runs).toBeLessThan(600);
    }

    const last = bench.daemon(env);
    await last.catchesUp();
    const metrics = await last.metrics();
    expect(metrics.get('scanfeed_runs_total{outcome="inserted"}')).toBe(600 - (before?.runs ?? 0));
    expect(metrics.get('scanfeed_runs_total{outcome="unchanged"}')).toBe(0);
    const rows = await database.query<{ scan_id: string }>('SELECT scan_id FROM scanfeed.runs');
    expect(rows.map((row) => row.scan_id).sort()).toEqual([...delivered].sort());
    expect(await database.query('SELECT FROM scanfeed.run_history')).toEqual([]);
  },
);
