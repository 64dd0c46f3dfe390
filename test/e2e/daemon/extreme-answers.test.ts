import { describe, expect, it } from 'vitest';
import type { FaultInput } from '../../../src/emulator/index.js';
import { LARGEST_PAGE_BYTES } from '../../../src/sync/page/page-limit.js';
import { eventually } from '../../support/program/daemon.js';
import { peakMiB } from '../../support/program/peak-memory.js';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();
const MB = 1_000_000;
const PATIENCE = { timeout: 240_000 };
/** Number of times that each answer is given; halving the page limit does not help. */
const TIMES = 3;

/** An entry that is not in the feed. */
const entry = (over: string) =>
  `{"scanId":"odd","revision":1,"status":"completed","environment":"prod","documentType":{"slug":"a","name":"A"},"fileName":"a.pdf",${over}}`;
const page = (items: string, more = '') => `{"items":[${items}]${more},"nextCursor":"odd"}`;
const list = (of: string, count: number) => `${`${of},`.repeat(count - 1)}${of}`;
const numbered = (count: number, of: (n: number) => string) => Array.from({ length: count }, (_, n) => of(n)).join();
const nested = (open: string, close: string, depth: number) => `${open.repeat(depth)}0${close.repeat(depth)}`;

/** Extreme answers of the service and the expected kinds of errors. */
const EXTREME_PAGES: readonly (readonly [answer: string, body: () => string, kind: string])[] = [
  [
    '40,000 entries on one page',
    () => page(list(entry(`"data":{"a":"${'x'.repeat(600)}"}`), 40_000)),
    'too_many_values',
  ],
  ['1 million empty objects as entries', () => page(list('{}', MB)), 'too_many_values'],
  ['4 million empty arrays in an unknown field', () => page('', `,"other":[${list('[]', 4 * MB)}]`), 'too_many_values'],
  ['60 MB of opening brackets', () => '['.repeat(60 * MB), 'not_json'],
  ['1 MiB of nested arrays', () => nested('[', ']', 2 ** 19 - 1), 'too_many_values'],
  ['5 million nested arrays', () => page('', `,"other":${nested('[', ']', 5 * MB)}`), 'too_many_values'],
  ['5 million nested objects', () => page(entry(`"documentType":${nested('{"a":', '}', 5 * MB)}`)), 'too_many_values'],
  ['1 million keys', () => page('', `,"other":{${numbered(MB, (n) => `"k${n}":0`)}}`), 'too_many_values'],
  ['the same key 3 million times', () => page('', `,"other":{${list('"k":{}', 3 * MB)}}`), 'too_many_values'],
  ['an entry of 500,000 unknown fields', () => page(entry(numbered(MB / 2, (n) => `"k${n}":0`))), 'too_many_values'],
  ['a number of 50 MB', () => page(entry(`"ocrConfidence":${'9'.repeat(50 * MB)}`)), 'too_many_values'],
  ['a key of 50 MB', () => page(entry(`"${'x'.repeat(50 * MB)}":0`)), 'too_many_values'],
  ['a key of 50 MB with escapes', () => page(entry(`"€\\n${'x'.repeat(50 * MB)}":0`)), 'too_many_values'],
  ['a string of 200 MB', () => page(entry(`"data":{"a":"${'x'.repeat(200 * MB)}"}`)), 'too_large'],
  [
    'items that are an object',
    () => `{"items":{${numbered(MB, (n) => `"k${n}":[]`)}},"nextCursor":"x"}`,
    'too_many_values',
  ],
  ['60 MB of white space', () => ' '.repeat(60 * MB), 'not_json'],
];

const answering = (operation: 'feed' | 'run', body: string): FaultInput => ({
  kind: 'answer',
  headers: { 'content-type': 'application/json' },
  operation,
  body,
  next: TIMES,
});

describe.runIf(process.platform === 'linux')('the image with 256 MiB', () => {
  it.each(EXTREME_PAGES)(
    'reports the kind of the error and continues when a page is %s',
    PATIENCE,
    async (_, body, kind) => {
      const service = await setup.startService();
      const database = await setup.createDatabase();
      service.deliver(5);
      const answer = body();
      // A page requested with a limit of one entry is read whole, whatever its size.
      const limit = answer.length > LARGEST_PAGE_BYTES ? '1' : '200';
      const env = { ...setup.environment(service, database), SCANFEED_PAGE_LIMIT: limit };
      const daemon = setup.daemonInImage(env);
      await daemon.catchesUp();
      service.addFault(answering('feed', answer));
      await eventually(() => service.asked.filter(({ fault }) => fault !== null).length, PATIENCE).toBe(TIMES);
      service.deliver(5);
      await daemon.reaches({ runsWritten: 10, caughtUp: true });
      const errors = daemon.logged().flatMap(({ error }) => (error === undefined ? [] : [error]));
      expect(errors).toEqual(expect.arrayContaining([expect.objectContaining({ kind, message: expect.any(String) })]));
      expect(await peakMiB(daemon.pid)).toBeLessThan(256);
    },
  );

  it('stores pages of 130,000 unknown fields each, several of which are held at once', PATIENCE, async () => {
    const PAGES = 10;
    const service = await setup.startService();
    const database = await setup.createDatabase();
    service.deliver(5);
    const daemon = setup.daemonInImage(setup.environment(service, database));
    await daemon.catchesUp();
    const unknown = numbered(130_000, (n) => `"k${n}":0`);
    for (let n = 0; n < PAGES; n += 1) {
      const one = entry(unknown).replace('"odd"', `"odd-${n}"`);
      service.addFault({ ...answering('feed', page(one).replace('"odd"}', `"odd-${n}"}`)), next: 1 });
    }
    const stored = () => database.query("SELECT FROM scanfeed.runs WHERE scan_id LIKE 'odd-%' AND extra ? 'k129999'");
    await eventually(async () => (await stored()).length, PATIENCE).toBe(PAGES);
    expect(await peakMiB(daemon.pid)).toBeLessThan(256);
  });

  it('quarantines an entry when it is unusable and has 60 MB', PATIENCE, async () => {
    const service = await setup.startService();
    const database = await setup.createDatabase();
    const daemon = setup.daemonInImage({ ...setup.environment(service, database), SCANFEED_PAGE_LIMIT: '1' });
    await daemon.catchesUp();
    const unusable = entry(`"data":{"a":"${'x'.repeat(60 * MB)}"},"deliveredAt":"yesterday"`);
    service.addFault({ ...answering('feed', page(unusable.replace('"completed"', '"archived"'))), next: 1 });
    const kept = () => database.query('SELECT octet_length(payload) AS bytes FROM scanfeed.quarantine');
    await eventually(kept, PATIENCE).toEqual([{ bytes: expect.any(Number) }]);
    expect((await kept())[0]?.bytes).toBeGreaterThan(60 * MB);
    expect(await peakMiB(daemon.pid)).toBeLessThan(256);
  });

  it('completes the runs when single-run answers are extreme', PATIENCE, async () => {
    const service = await setup.startService();
    const database = await setup.createDatabase();
    const env = { ...setup.environment(service, database), SCANFEED_PENDING_RETRY_INTERVAL: '1s' };
    const daemon = setup.daemonInImage(env);
    await daemon.catchesUp();
    const bodies = [`{${numbered(MB, (n) => `"k${n}":0`)}}`, '['.repeat(60 * MB), `[${list('{}', MB)}]`];
    for (const body of bodies) service.addFault(answering('run', body));
    service.deliver(bodies.length, { truncated: 'data' });
    const complete = () => database.query("SELECT FROM scanfeed.runs WHERE result_state = 'complete'");
    await eventually(async () => (await complete()).length, PATIENCE).toBe(bodies.length);
    expect(service.asked.filter(({ fault }) => fault !== null)).toHaveLength(bodies.length * TIMES);
    expect(await peakMiB(daemon.pid)).toBeLessThan(256);
  });
});
