import { expect, test } from 'vitest';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

test('reports a stuck feed in the status and once in the log when the cursor does not advance', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.deliver(300); // a short page without a cursor would be the end of the feed

  service.addFault({ kind: 'missing-cursor', operation: 'feed' });
  const daemon = setup.daemon({
    ...setup.environment(service, database),
    SCANFEED_POLL_INTERVAL: '50ms',
    SCANFEED_LEASE_TTL: '2s',
  });
  await daemon.reaches({ stuckSince: expect.any(String) as unknown as string, runsWritten: 200 });
  const { stuckSince } = await daemon.status();
  const { body: page } = await daemon.get('/');
  expect(page).toContain('>Stuck, retrying</h1>');
  expect(page).toContain(`since <time datetime="${stuckSince}">`);
  const status = setup.program(['status'], { DATABASE_URL: database.url });
  expect(await status.exited).toMatchObject({ code: 0 });
  expect(status.stdout).toContain(
    `\nStuck:           since ${stuckSince}: the cursor that the service returns is missing`,
  );

  service.clearFaults();
  await daemon.catchesUp();
  await daemon.reaches({ stuckSince: null });
  const again = setup.program(['status'], { DATABASE_URL: database.url });
  await again.exited;
  expect(again.stdout).not.toContain('Stuck');
  const lines = daemon.logged().filter(({ message }) => message.includes('cursor'));
  expect(lines.map(({ level, message }) => [level, message])).toEqual([
    ['warn', 'feed stuck: cursor does not advance'],
    ['info', 'cursor advances again'],
  ]);
});
