import { expect, test } from 'vitest';
import { entryJson, raw } from '../../support/entries.js';
import { eventually } from '../../support/program/daemon.js';
import { type DaemonDatabase, type ServiceDouble, useProgram } from '../../support/program/setup.js';

const setup = useProgram();

/** Records the transaction in which each run is first stored, and those in which the feed's position moves. */
const AUDIT = `
  CREATE TABLE public.audit (tx xid8 NOT NULL DEFAULT pg_current_xact_id(), moves boolean, scan_id text);
  GRANT INSERT ON public.audit TO PUBLIC;
  CREATE FUNCTION public.note_run() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN INSERT INTO public.audit (scan_id) VALUES (NEW.scan_id); RETURN NEW; END$$;
  CREATE FUNCTION public.note_position() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN INSERT INTO public.audit (moves) VALUES (true); RETURN NEW; END$$;
  CREATE TRIGGER audit AFTER INSERT ON scanfeed.runs FOR EACH ROW EXECUTE FUNCTION public.note_run();
  CREATE TRIGGER audit AFTER UPDATE ON scanfeed.feeds FOR EACH ROW
    WHEN (OLD.cursor IS DISTINCT FROM NEW.cursor) EXECUTE FUNCTION public.note_position()`;

async function start(service: ServiceDouble) {
  const database = await setup.createDatabase();
  const env = setup.environment(service, database);
  expect(await setup.program(['migrate'], env).exited).toMatchObject({ code: 0 });
  await database.query(AUDIT);
  return { database, daemon: setup.daemon(env) };
}

/** Returns each transaction that stored runs for the first time: how many, and whether it moved the position. */
const transactions = (database: DaemonDatabase) =>
  database.query(`SELECT count(scan_id)::int AS runs, COALESCE(bool_or(moves), false) AS moves
    FROM audit GROUP BY tx HAVING count(scan_id) > 0`);

test('stores all runs in the transaction that moves the cursor when a page is ordinary', async () => {
  const service = await setup.startService();
  service.deliver(100);
  const { daemon, database } = await start(service);
  await daemon.reaches({ runsWritten: 100, caughtUp: true });
  expect(await transactions(database)).toEqual([{ runs: 100, moves: true }]);
});

test('stores all runs in the transaction that moves the cursor when a page has 6 MB', async () => {
  const service = await setup.startService({ switches: { inlineLimitBytes: 1_000_000 } });
  service.deliver(12, { data: { text: 'x'.repeat(500_000) } });
  const { daemon, database } = await start(service);
  await daemon.reaches({ runsWritten: 12, caughtUp: true });
  expect(await transactions(database)).toEqual([{ runs: 12, moves: true }]);
});

test('stores all other runs in the transaction that moves the cursor when a value is refused', async () => {
  const service = await setup.startService();
  service.deliver(60);
  service.appendRaw([entryJson({ scanId: 'bad', data: { betrag: raw('1e400000') } })]);
  service.deliver(39);
  const { daemon, database } = await start(service);
  await daemon.reaches({ quarantinedEntries: 1, runsWritten: 99, caughtUp: true });
  expect(await transactions(database)).toEqual([{ runs: 99, moves: true }]);
});

test('stores all runs in the transaction that moves the cursor when their results exceed the memory budget', async () => {
  const service = await setup.startService();
  service.deliver(5);
  service.deliver(6, { data: { text: 'x'.repeat(7_000_000) }, truncated: 'data' });
  const { daemon, database } = await start(service);
  await daemon.reaches({ pendingResults: 0, caughtUp: true });
  await eventually(() => database.query("SELECT FROM scanfeed.runs WHERE result_state = 'complete'")).toHaveLength(11);
  expect(await transactions(database)).toEqual([{ runs: 11, moves: true }]);
});
