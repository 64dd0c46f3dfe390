import { expect, test } from 'vitest';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

test('shows no secret when the daemon logs at level trace', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const { apiKey, password, document } = setup.secrets;
  const [scanId] = service.deliver(5) as [string];
  const daemon = setup.daemon({
    ...setup.environment(service, database),
    SCANFEED_LOG_LEVEL: 'trace',
    SCANFEED_MARKDOWN: 'true',
  });
  await daemon.catchesUp();
  // The same revision with other content, an unusable entry and a refused one: each is logged.
  service.appendRuns([{ scanId, status: 'failed', error: document }]);
  service.appendRaw([`{"scanId":"${document}","revision":0}`, `"${document}"`]);
  await daemon.reaches({ quarantinedEntries: 2 });

  expect(service.asked[0]?.headers.authorization).toBe(`Bearer ${apiKey}`);
  expect(new URL(database.url).password).toBe(password);
  const shown = await database.query(
    `SELECT data->>'text' AS text, partner_name, file_name FROM scanfeed.runs WHERE data IS NOT NULL LIMIT 1`,
  );
  expect(shown).toEqual([{ text: document, partner_name: document, file_name: `${document}.pdf` }]);
  expect(daemon.logged('committed').length).toBeGreaterThan(1);
});

test('hides the message of a trigger that others have added when it refuses a row', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const env = { ...setup.environment(service, database), SCANFEED_LOG_LEVEL: 'trace' };
  expect(await setup.program(['migrate'], env).exited).toEqual({ code: 0, signal: null });
  await database.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'no %', NEW.data USING DETAIL = NEW.partner_name, HINT = NEW.file_name;
    END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON scanfeed.runs FOR EACH ROW EXECUTE FUNCTION refuse()`);
  service.deliver(1);
  const daemon = setup.daemon(env);
  await daemon.failsRepeatedly('feed', 1);
  expect((await daemon.status()).currentErrors[0]?.message).toContain('SQLSTATE P0001');
  await database.query('DROP TRIGGER refuse ON scanfeed.runs');
  await daemon.catchesUp();
  await daemon.reaches({ runsWritten: 1 });
});
