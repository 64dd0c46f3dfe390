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
  ['half a page as a complete response', { kind: 'half' }, 'not_json'],
  ['a body that is cut', { kind: 'cut' }, 'cut_body'],
  ['a connection that is reset', { kind: 'reset' }, 'connection'],
  ['JSON that is not a page', { kind: 'answer', headers: json, body: '[]' }, 'wrong_shape'],
  [
    'a page whose items are not a list',
    { kind: 'answer', headers: json, body: '{"items":{},"nextCursor":"x"}' },
    'wrong_shape',
  ],
];

/** Gives an answer to a daemon that has caught up, checks its reaction, and waits until it has caught up again. */
async function giveAnswer({ service, database, daemon }: Setup, answer: string, fault: FaultInput, kind: string) {
  const before = await database.query(position);
  const { runsWritten } = await daemon.status();
  const errors = async () => (await daemon.metric(`scanfeed_errors_total{stage="feed",kind="${kind}"}`)) ?? 0;
  const failedPolls = async () => (await daemon.metric('scanfeed_polls_total{outcome="failed"}')) ?? -1;
  const [errorsBefore, failedBefore] = [await errors(), await failedPolls()];

  service.addFault(fault);
  const answered = service.requests.next((request) => request.fault === fault.kind);
  service.deliver(5);
  await answered;
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

interface Setup {
  readonly service: ServiceDouble;
  readonly database: DaemonDatabase;
  readonly daemon: Daemon;
}

async function setup(settings: Readonly<Record<string, string>>): Promise<Setup> {
  const service = await bench.startService();
  const database = await bench.createDatabase();
  service.deliver(5);
  const daemon = bench.daemon({ ...bench.environment(service, database), ...settings });
  await daemon.catchesUp();
  return { service, database, daemon };
}

test('stores nothing, keeps the cursor, counts the failure and retries when an answer is unusable', async () => {
  // One daemon for all: each answer meets the state that the previous one has left.
  const started = await setup({});
  for (const [answer, fault, kind] of UNUSABLE) await giveAnswer(started, answer, fault, kind);
});

test('stores nothing, keeps the cursor, counts the failure and retries when a page drips too slowly', async () => {
  // A short timeout, but only in this test: on a busy machine a normal poll would exceed it as well.
  const started = await setup({ SCANFEED_REQUEST_TIMEOUT: '300ms' });
  await giveAnswer(started, 'a page that drips too slowly', { kind: 'slow', dripMs: 50 }, 'timeout');
});
