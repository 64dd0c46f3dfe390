import { expect, test } from 'vitest';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

test('reports all wrong settings with the allowed values and without secrets, and exits with 78', async () => {
  const daemon = setup.daemon({
    SCANFEED_BASE_URL: 'ftp://service.example/v1',
    SCANFEED_API_KEY: `${setup.secrets.apiKey} with a space`,
    DATABASE_URL: `mysql://someone:${setup.secrets.password}@db.example/app`,
    SCANFEED_PAGE_LIMIT: '201',
    SCANFEED_POLL_INTERVAL: 'often',
    SCANFEED_ADMIN_PORT: '99999',
  });
  expect(await daemon.exited).toEqual({ code: 78, signal: null });
  expect(daemon.stdout).toBe('');
  const [head, ...mistakes] = daemon.stderr.trimEnd().split('\n');
  expect(head).toBe('scanfeed: 6 settings are wrong:');
  expect(mistakes.map((line) => line.trim()).sort()).toEqual([
    expect.stringMatching(/^DATABASE_URL is set \(value hidden\).*; expected: .*postgres/),
    expect.stringMatching(/^SCANFEED_ADMIN_PORT is "99999"; expected: a whole number from 0 to 65535/),
    expect.stringMatching(/^SCANFEED_API_KEY is set \(value hidden\); expected: /),
    expect.stringMatching(/^SCANFEED_BASE_URL is "ftp:.*; expected: the https: URL/),
    expect.stringMatching(/^SCANFEED_PAGE_LIMIT is "201"; expected: a whole number from 1 to 200/),
    expect.stringMatching(/^SCANFEED_POLL_INTERVAL is "often"; expected: a duration from /),
  ]);
});

test('warns of an unknown name with the most similar setting, and runs', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const daemon = setup.daemon({ ...setup.environment(service, database), SCANFEED_POLL_INTERVALL: '1s' });
  await daemon.logs('SCANFEED_POLL_INTERVALL is not a setting and is ignored; did you mean SCANFEED_POLL_INTERVAL?', {
    level: 'warn',
  });
  await daemon.catchesUp();
});
