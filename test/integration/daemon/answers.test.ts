import { expect, test } from 'vitest';
import type { FaultInput } from '../../../src/emulator/index.js';
import { useProgram } from '../../support/program/bench.js';
import { eventually } from '../../support/program/daemon.js';

const bench = useProgram();
const json = { 'content-type': 'application/json' };

const position = 'SELECT cursor, (SELECT count(*)::int FROM scanfeed.runs) AS runs FROM scanfeed.feeds';

test.each<[string, FaultInput, string]>([
  ['an HTML page', { kind: 'html' }, 'not_json'],
  ['an empty body', { kind: 'empty' }, 'not_json'],
  ['half a page that looks whole', { kind: 'half' }, 'not_json'],
  ['a body that is cut', { kind: 'cut' }, 'cut_body'],
  ['a connection that is reset', { kind: 'reset' }, 'connection'],
  ['a page that drips too slowly', { kind: 'slow', dripMs: 50 }, 'timeout'],
  ['JSON that is no page', { kind: 'answer', headers: json, body: '[]' }, 'wrong_shape'],
  [
    'a page whose items are none',
    { kind: 'answer', headers: json, body: '{"items":{},"nextCursor":"x"}' },
    'wrong_shape',
  ],
])('%s: nothing is stored, the cursor stays, it is counted and tried again', async (_, fault, kind) => {
  const service = await bench.startService();
  const database = await bench.createDatabase();
  service.deliver(5);
  // Short only where it has to pass: on a busy machine a sound poll would miss it as well.
  const timeout = kind === 'timeout' ? '300ms' : '30s';
  const daemon = bench.daemon({ ...bench.environment(service, database), SCANFEED_REQUEST_TIMEOUT: timeout });
  await daemon.catchesUp();
  const before = await database.query(position);
  const errors = () => daemon.metric(`scanfeed_errors_total{stage="feed",kind="${kind}"}`);
  expect(await errors()).toBe(0);

  service.addFault(fault);
  const struck = service.requests.next((request) => request.fault === fault.kind);
  service.deliver(5);
  await struck;
  await daemon.failsRepeatedly('feed', 1);
  expect((await daemon.status()).troubles).toMatchObject([{ stage: 'feed', kind }]);
  expect(await database.query(position)).toEqual(before);

  service.clearFaults();
  await daemon.catchesUp();
  await daemon.reaches({ runsWritten: 10 });
  await eventually(errors).toBeGreaterThanOrEqual(1);
  expect(await daemon.metric('scanfeed_polls_total{outcome="failed"}')).toBeGreaterThanOrEqual((await errors()) ?? 1);
});
