import { expect, test } from 'vitest';
import type { FaultInput } from '../../../src/emulator/index.js';
import { type DaemonDatabase, type ServiceDouble, useProgram } from '../../support/program/bench.js';
import { type Daemon, eventually } from '../../support/program/daemon.js';

const bench = useProgram();
const json = { 'content-type': 'application/json' };

const position = 'SELECT cursor, (SELECT count(*)::int FROM scanfeed.runs) AS runs FROM scanfeed.feeds';

const UNUSABLE: readonly (readonly [answer: string, FaultInput, kind: string])[] = [
  ['an HTML page', { kind: 'html' }, 'not_json'],
  ['an empty body', { kind: 'empty' }, 'not_json'],
  ['half a page that looks whole', { kind: 'half' }, 'not_json'],
  ['a body that is cut', { kind: 'cut' }, 'cut_body'],
  ['a connection that is reset', { kind: 'reset' }, 'connection'],
  ['JSON that is no page', { kind: 'answer', headers: json, body: '[]' }, 'wrong_shape'],
  [
    'a page whose items are none',
    { kind: 'answer', headers: json, body: '{"items":{},"nextCursor":"x"}' },
    'wrong_shape',
  ],
];

/** Strikes a daemon that has caught up with an answer, expects that it survives it, and lets it catch up again. */
async function strike({ service, database, daemon }: Struck, answer: string, fault: FaultInput, kind: string) {
  const before = await database.query(position);
  const { runsWritten } = await daemon.status();
  const errors = async () => (await daemon.metric(`scanfeed_errors_total{stage="feed",kind="${kind}"}`)) ?? -1;
  const failedPolls = async () => (await daemon.metric('scanfeed_polls_total{outcome="failed"}')) ?? -1;
  const [errorsBefore, failedBefore] = [await errors(), await failedPolls()];

  service.addFault(fault);
  const struck = service.requests.next((request) => request.fault === fault.kind);
  service.deliver(5);
  await struck;
  await daemon.failsRepeatedly('feed', 1);
  expect((await daemon.status()).currentErrors, answer).toMatchObject([{ stage: 'feed', kind }]);
  expect(await database.query(position), answer).toEqual(before);

  service.clearFaults();
  await daemon.catchesUp();
  await daemon.reaches({ runsWritten: runsWritten + 5 });
  await eventually(errors, { message: answer }).toBeGreaterThan(errorsBefore);
  const failed = (await errors()) - errorsBefore;
  expect((await failedPolls()) - failedBefore, answer).toBeGreaterThanOrEqual(failed);
}

interface Struck {
  readonly service: ServiceDouble;
  readonly database: DaemonDatabase;
  readonly daemon: Daemon;
}

async function startStruck(settings: Readonly<Record<string, string>>): Promise<Struck> {
  const service = await bench.startService();
  const database = await bench.createDatabase();
  service.deliver(5);
  const daemon = bench.daemon({ ...bench.environment(service, database), ...settings });
  await daemon.catchesUp();
  return { service, database, daemon };
}

test('of an answer that cannot be used nothing is stored, the cursor stays, it is counted and tried again', async () => {
  // One daemon for all: each answer meets it as the one before has left it.
  const struck = await startStruck({});
  for (const [answer, fault, kind] of UNUSABLE) await strike(struck, answer, fault, kind);
});

test('a page that drips too slowly is no other: nothing is stored, the cursor stays, it is counted and tried again', async () => {
  // Short only here, where it has to pass: on a busy machine a sound poll would miss it as well.
  const struck = await startStruck({ SCANFEED_REQUEST_TIMEOUT: '300ms' });
  await strike(struck, 'a page that drips too slowly', { kind: 'slow', dripMs: 50 }, 'timeout');
});
