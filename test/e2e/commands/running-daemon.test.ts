import { expect, test } from 'vitest';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

/** Starts a daemon that is caught up, and runs commands in its environment. */
async function setUp(over: Readonly<Record<string, string>> = {}) {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const scanIds = service.deliver(30, { deliveredAt: Date.now() - 60_000 });
  const env = { ...setup.environment(service, database), ...over };
  const daemon = setup.daemon(env);
  await daemon.catchesUp();
  const command = async (...args: string[]) => {
    const program = setup.program(args, env);
    const { code } = await program.exited;
    return { code, stdout: program.stdout, stderr: program.stderr };
  };
  const stored = async () => (await database.query('SELECT scan_id FROM scanfeed.runs')).map((row) => row.scan_id);
  return { service, database, scanIds, env, daemon, command, stored };
}

test('reads again from the new position, and keeps stored runs, when the feed is rewound', async () => {
  const { database, scanIds, daemon, command, stored } = await setUp();
  const [lost] = scanIds;
  const kept = 'SELECT scan_id, change_seq FROM scanfeed.runs WHERE scan_id <> $1 ORDER BY scan_id';
  await database.query('DELETE FROM scanfeed.runs WHERE scan_id = $1', [lost]);
  const before = await database.query(kept, [lost]);
  expect(await command('rewind', '--beginning', '--yes')).toMatchObject({ code: 0, stderr: '' });
  await eventually(stored).toContain(lost);
  await daemon.catchesUp();
  expect(await database.query(kept, [lost])).toEqual(before);
});

test('continues after a change of the address of the service when the feed is forgotten', async () => {
  const { service, daemon, env, stored } = await setUp();
  await daemon.stop();
  const moved = { ...env, SCANFEED_BASE_URL: service.url.replace('127.0.0.1', 'localhost') };
  const holding = setup.daemon(moved);
  await holding.failsRepeatedly('lease', 1);
  const [late] = service.deliver(1);
  expect(await setup.program(['forget', 'default', '--yes'], moved).exited).toMatchObject({ code: 0 });
  await eventually(stored).toContain(late);
});

test('holds, and stores nothing, when the feed is forgotten and the new address has another organization', async () => {
  const { database, daemon } = await setUp();
  await daemon.stop();
  const other = await setup.startService();
  other.deliver(5);
  const moved = setup.environment(other, database);
  const holding = setup.daemon(moved);
  await holding.failsRepeatedly('lease', 1);
  expect(await setup.program(['forget', 'default', '--yes'], moved).exited).toMatchObject({ code: 0 });
  await holding.logs('holding: action required', { kind: 'another_organization' });
  expect(await database.query('SELECT FROM scanfeed.feeds')).toEqual([]);
});

test('shows no differences when verify runs while it is writing', async () => {
  const { service, command } = await setUp();
  service.set({ newRunsPerSecond: 200 });
  expect(await command('verify', '--since', '30d', '--json')).toMatchObject({ code: 0 });
});
