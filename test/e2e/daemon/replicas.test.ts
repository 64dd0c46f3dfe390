import { expect, test } from 'vitest';
import { type Daemon, eventually } from '../../support/program/daemon.js';
import { Gateway } from '../../support/program/gateway.js';
import { type DaemonDatabase, useProgram } from '../../support/program/setup.js';

const setup = useProgram();

const isLeader = async (daemon: Daemon) => (await daemon.metric('scanfeed_leader')) === 1;

/** Long enough that the lease does not expire on a busy machine. Standbys check it three times per period. */
const LONG_LEASE = { SCANFEED_LEASE_TTL: '9s' };

/** Expires the leases of all processes. */
const expireLease = (database: DaemonDatabase) =>
  database.query('UPDATE scanfeed.processes SET expires_at = clock_timestamp()');

async function leadersOf(daemons: readonly Daemon[]): Promise<Daemon[]> {
  const leading = await Promise.all(daemons.map(isLeader));
  return daemons.filter((_, index) => leading[index]);
}

async function leaderOf(daemons: readonly Daemon[]): Promise<Daemon> {
  let leaders: readonly Daemon[] = [];
  await eventually(async () => {
    leaders = await leadersOf(daemons);
    return leaders.length;
  }).toBe(1);
  return leaders[0] as Daemon;
}

const countRuns = async (database: DaemonDatabase) =>
  (await database.query<{ runs: number }>('SELECT count(*)::int AS runs FROM scanfeed.runs'))[0]?.runs;

/** Records the epoch and cursor of each commit, in order. */
async function auditCursor(database: DaemonDatabase): Promise<void> {
  await database.query(`
    CREATE TABLE audit (number bigint GENERATED ALWAYS AS IDENTITY, epoch bigint, holder text, old text, new text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO public.audit (epoch, holder, old, new) VALUES (NEW.lease_epoch, NEW.lease_holder, OLD.cursor, NEW.cursor);
      RETURN NULL;
    END $$;
    CREATE TRIGGER note AFTER UPDATE ON scanfeed.feeds FOR EACH ROW
      WHEN (NEW.cursor IS DISTINCT FROM OLD.cursor) EXECUTE FUNCTION note()`);
}

interface Move {
  readonly epoch: number;
  readonly holder: string;
  readonly old: string | null;
  readonly new: string;
}

/**
 * Checks that there was one writer at a time: epochs only rise, each has one holder, and each commit continues from the one before.
 */
async function expectOneWriterAtATime(database: DaemonDatabase): Promise<readonly Move[]> {
  const moves = await database.query<Move>('SELECT epoch::int, holder, old, new FROM audit ORDER BY number');
  expect(moves.map(({ epoch }) => epoch)).toEqual(moves.map(({ epoch }) => epoch).sort((a, b) => a - b));
  const holders = new Set(moves.map(({ epoch, holder }) => `${epoch} ${holder}`));
  expect(holders.size).toBe(new Set(moves.map(({ epoch }) => epoch)).size);
  for (const [index, move] of moves.entries()) expect(move.old).toBe(moves[index - 1]?.new ?? null);
  expect(new Set(moves.map((move) => move.new)).size).toBe(moves.length);
  return moves;
}

test('one of three replicas leads and the others report the same; another takes over after kill -9 of the leader', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const env = { ...setup.environment(service, database), ...LONG_LEASE };
  service.deliver(50);
  const daemons = [1, 2, 3].map(() => setup.daemon(env));
  const leader = await leaderOf(daemons);
  await leader.catchesUp();
  for (const daemon of daemons) {
    await daemon.reaches({ initialSyncComplete: true, pendingResults: 0, currentErrors: [] });
    expect(await daemon.get('/readyz')).toMatchObject({ status: 200 });
  }
  await eventually(
    async () => new Set(await Promise.all(daemons.map(async (d) => (await d.status()).leaseHolder))).size,
  ).toBe(1);
  expect(await leadersOf(daemons)).toEqual([leader]);
  const standbys = daemons.filter((daemon) => daemon !== leader);
  expect((await leader.get('/')).body).toMatch(/Highest: .*50 runs in the last \d min\./s);
  for (const standby of standbys) {
    expect(await standby.status()).toMatchObject({ role: 'standby', caughtUp: false, runsWritten: 0 });
    const { body: page } = await standby.get('/');
    expect(page).toMatch(/Highest: .*This process did not lead the feed in the last \d min\./s);
    // A standby refreshes its lag three times per lease, so it may exceed the leader's by 3 s.
    await eventually(() => standby.metric('scanfeed_lag_seconds')).toBeLessThan(5);
  }

  await leader.stop('SIGKILL');
  await expireLease(database);
  service.deliver(50);
  const next = await leaderOf(standbys);
  await next.catchesUp();
  await next.reaches({ runsWritten: 50 });
  expect(await countRuns(database)).toBe(100);
  expect(await database.query('SELECT lease_epoch::int AS epoch FROM scanfeed.feeds')).toEqual([{ epoch: 2 }]);
});

test('a leader is fenced and steps down when it was paused for longer than its lease, and nothing is lost', async () => {
  const service = await setup.startService({ switches: { latencyMs: 10 } });
  const database = await setup.createDatabase();
  const env = { ...setup.environment(service, database), ...LONG_LEASE, SCANFEED_PAGE_LIMIT: '5' };
  expect(await setup.program(['migrate'], env).exited).toEqual({ code: 0, signal: null });
  await auditCursor(database);
  const delivered = service.deliver(600);
  const paused = setup.daemon(env);
  await service.requests.next(() => service.requests.count('feed') >= 20);
  paused.signal('SIGSTOP');
  expect(await countRuns(database)).toBeLessThan(600);
  await expireLease(database);

  const other = setup.daemon(env);
  await eventually(() => isLeader(other)).toBe(true);
  await service.requests.next();
  paused.signal('SIGCONT');
  await paused.logs('stopped leading the feed');
  await other.catchesUp();
  await paused.reaches({ role: 'standby', caughtUp: false });
  expect(await isLeader(other)).toBe(true);

  const rows = await database.query<{ scan_id: string }>('SELECT scan_id FROM scanfeed.runs');
  expect(rows.map((row) => row.scan_id).sort()).toEqual([...delivered].sort());
  expect(await database.query('SELECT FROM scanfeed.run_history')).toEqual([]);
  const moves = await expectOneWriterAtATime(database);
  expect(new Set(moves.map(({ epoch }) => epoch))).toEqual(new Set([1, 2]));
});

test('a commit changes nothing when it arrives after the lease has expired', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const env = { ...setup.environment(service, database), ...LONG_LEASE, SCANFEED_PAGE_LIMIT: '5' };
  expect(await setup.program(['migrate'], env).exited).toEqual({ code: 0, signal: null });
  await auditCursor(database);
  const gateway = await Gateway.to(database.url);
  setup.afterwards(() => gateway.close());
  await gateway.open();
  const delivered = service.deliver(300);
  // Three chunks are one or two commits; the history needs about ten.
  let chunks = 0;
  gateway.holdFrom((bytes) => bytes.includes(setup.secrets.document) && ++chunks > 3);
  const cutOff = setup.daemon({ ...env, DATABASE_URL: gateway.through(database.url) });
  await eventually(() => gateway.held.includes(setup.secrets.document)).toBe(true);
  await expireLease(database);

  const other = setup.daemon(env);
  await other.catchesUp();
  const before = await expectOneWriterAtATime(database);
  gateway.release();
  await cutOff.logs('stopped leading the feed');
  await cutOff.reaches({ role: 'standby' });
  expect(await expectOneWriterAtATime(database)).toEqual(before);
  expect(new Set(before.map(({ epoch }) => epoch))).toEqual(new Set([1, 2]));
  expect(await isLeader(other)).toBe(true);
  expect(await countRuns(database)).toBe(delivered.length);
  expect(await database.query('SELECT FROM scanfeed.run_history')).toEqual([]);
});
