import { expect, test } from 'vitest';
import { entryJson, raw } from '../../support/entries.js';
import { type DaemonDatabase, type ServiceDouble, useProgram } from '../../support/program/bench.js';
import { eventually } from '../../support/program/daemon.js';

const bench = useProgram();
const HOUR_MS = 3_600_000;

/** Records the transaction in which each run is first stored, and those in which a position moves. */
const AUDIT = `
  CREATE TABLE public.audit (tx xid8 NOT NULL DEFAULT pg_current_xact_id(), position text, scan_id text);
  GRANT INSERT ON public.audit TO PUBLIC;
  CREATE FUNCTION public.note_run() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN INSERT INTO public.audit (scan_id) VALUES (NEW.scan_id); RETURN NEW; END$$;
  CREATE FUNCTION public.note_position() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN INSERT INTO public.audit (position) VALUES (COALESCE(to_jsonb(NEW)->>'kind', 'feed')); RETURN NEW; END$$;
  CREATE TRIGGER audit AFTER INSERT ON scanfeed.runs FOR EACH ROW EXECUTE FUNCTION public.note_run();
  CREATE TRIGGER audit AFTER UPDATE ON scanfeed.feeds FOR EACH ROW
    WHEN (OLD.cursor IS DISTINCT FROM NEW.cursor) EXECUTE FUNCTION public.note_position();
  CREATE TRIGGER audit AFTER UPDATE ON scanfeed.passes FOR EACH ROW
    WHEN (OLD.cursor IS DISTINCT FROM NEW.cursor) EXECUTE FUNCTION public.note_position()`;

async function start(service: ServiceDouble, over: Readonly<Record<string, string>> = {}) {
  const database = await bench.createDatabase();
  const env = { ...bench.environment(service, database), ...over };
  expect(await bench.program(['migrate'], env).exited).toMatchObject({ code: 0 });
  await database.query(AUDIT);
  return { database, env, daemon: bench.daemon(env) };
}

/** Returns the number of runs first stored in each transaction that moved a position. */
const storedWith = async (database: DaemonDatabase) =>
  Object.fromEntries(
    (
      await database.query<{ position: string; runs: number }>(
        `SELECT COALESCE(moved.position, 'none') AS position, count(*)::int AS runs
         FROM audit AS run LEFT JOIN (SELECT DISTINCT tx, position FROM audit WHERE position IS NOT NULL) AS moved USING (tx)
         WHERE run.scan_id IS NOT NULL GROUP BY 1`,
      )
    ).map(({ position, runs }) => [position, runs]),
  );

/** Returns the maximum number of runs first stored in one transaction. */
const mostAtOnce = async (database: DaemonDatabase) =>
  (
    await database.query<{ runs: number }>(
      'SELECT count(scan_id)::int AS runs FROM audit GROUP BY tx ORDER BY runs DESC LIMIT 1',
    )
  )[0]?.runs;

test('stores all runs in the transaction that moves the cursor when a page is ordinary', async () => {
  const service = await bench.startService();
  service.deliver(100);
  const { daemon, database } = await start(service);
  await daemon.reaches({ runsWritten: 100, caughtUp: true });
  expect(await storedWith(database)).toEqual({ feed: 100 });
  expect(await mostAtOnce(database)).toBe(100);
});

test('stores all runs in the transaction that moves the cursor when a page has 6 MB', async () => {
  const service = await bench.startService({ switches: { inlineLimitBytes: 1_000_000 } });
  service.deliver(12, { data: { text: 'x'.repeat(500_000) } });
  const { daemon, database } = await start(service);
  await daemon.reaches({ runsWritten: 12, caughtUp: true });
  expect(await storedWith(database)).toEqual({ feed: 12 });
  expect(await mostAtOnce(database)).toBe(12);
});

test('stores all other runs in the transaction that moves the cursor when a value is refused', async () => {
  const service = await bench.startService();
  service.deliver(60);
  service.appendRaw([entryJson({ scanId: 'bad', data: { betrag: raw('1e400000') } })]);
  service.deliver(39);
  const { daemon, database } = await start(service);
  await daemon.reaches({ quarantinedEntries: 1, runsWritten: 99, caughtUp: true });
  expect(await storedWith(database)).toEqual({ feed: 99 });
  expect(await mostAtOnce(database)).toBe(99);
});

test('stores all runs in the transaction that moves the cursor when their results exceed the memory budget', async () => {
  const service = await bench.startService();
  service.deliver(5);
  service.deliver(6, { data: { text: 'x'.repeat(7_000_000) }, truncated: 'data' });
  const { daemon, database } = await start(service);
  await daemon.reaches({ pendingResults: 0, caughtUp: true });
  await eventually(() => database.query("SELECT FROM scanfeed.runs WHERE result_state = 'complete'")).toHaveLength(11);
  expect(await storedWith(database)).toEqual({ feed: 11 });
  expect(await mostAtOnce(database)).toBe(11);
});

test('stores runs with the position of the pass when a history pass finds them', async () => {
  const service = await bench.startService();
  service.deliver(50, { deliveredAt: Date.now() - 5 * HOUR_MS });
  const { daemon, database } = await start(service, { SCANFEED_START: 'live' });
  await daemon.reaches({ initialSyncComplete: true, runsWritten: 50 });
  expect(await storedWith(database)).toEqual({ history: 50 });
});

test('stores runs with the position of the pass when a recent pass finds them', async () => {
  const service = await bench.startService();
  service.deliver(5);
  const { daemon, database } = await start(service, { SCANFEED_RECONCILE_INTERVAL: '1s' });
  await daemon.catchesUp();
  service.deliver(20, { deliveredAt: Date.now() - 60_000 });
  await eventually(() => daemon.metric('scanfeed_reconcile_found_total{revision="first"}')).toBe(20);
  expect(await storedWith(database)).toEqual({ feed: 5, recent: 20 });
});

test.each([
  ['full', ['reconcile', '--full']],
  ['backfill', ['backfill', '--beginning']],
] as const)('stores runs with the position of the pass when a requested %s pass finds them', async (kind, args) => {
  const service = await bench.startService();
  service.deliver(25);
  const { daemon, database, env } = await start(service, { SCANFEED_PAGE_LIMIT: '10' });
  await daemon.catchesUp();
  await daemon.stop();
  await database.query('DELETE FROM scanfeed.runs');
  await database.query('DELETE FROM audit');
  expect(await bench.program(args, env).exited).toMatchObject({ code: 0 });
  await bench.daemon(env).logs(`finished ${kind === 'full' ? 'full pass' : kind}`);
  expect(await storedWith(database)).toEqual({ [kind]: 25 });
  expect(await mostAtOnce(database)).toBe(10);
});
