import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import * as get from '../../../src/cli/commands/get.js';
import { type Emulator, startEmulator } from '../../../src/emulator/index.js';
import { runCommand } from '../../support/command.js';
import { entryJson, raw } from '../../support/entries.js';
import { commitPending } from '../../support/pending.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, runRow, type TestFeed, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
let emulator: Emulator;
let feed: TestFeed;
let scans = 0;

beforeAll(async () => {
  emulator = await startEmulator({ history: 0 });
});
afterAll(() => emulator.close());
beforeEach(async () => {
  emulator.clearFaults();
  await setup.rows(sql`TRUNCATE ${tables.feeds}, ${tables.runs}, ${tables.cursorHistory}`);
  feed = await setup.takeFeed({ baseUrl: emulator.url });
});

/** A run that the single-run endpoint returns. */
function known(answer: Record<string, unknown>): { scanId: string; body: string } {
  const scanId = `known-${++scans}`;
  const body = entryJson({ scanId, ...answer });
  emulator.answerRun(scanId, { body });
  return { scanId, body };
}
const service = () => ({ SCANFEED_BASE_URL: emulator.url, SCANFEED_API_KEY: emulator.apiKey });
const show = (args: string, columns?: number) =>
  runCommand(get, ['get', ...args.split(' ')], { env: service(), ...(columns ? { columns } : {}) });
const save = (args: string, env: Record<string, string> = {}) =>
  runCommand(get, ['get', ...args.split(' '), '--save'], { env: { ...service(), DATABASE_URL: given.url, ...env } });
const stored = async (scanId: string) => (await setup.rows(runRow(scanId)))[0];

describe('get', () => {
  it('writes the answer of the service byte for byte when the output is a pipe', async () => {
    const { scanId, body } = known({ data: { betrag: raw('1.10'), nummer: raw('12345678901234567890') } });
    const answer = { exitCode: 0, out: `${body}\n`, err: '' };
    expect(await show(scanId)).toEqual(answer);
    expect(await show(`${scanId} --json`, 80)).toEqual(answer);
  });

  it('shows every digit, and no control characters, when the output is a terminal', async () => {
    const { scanId } = known({
      ...{ revision: 2, fileName: 'a\u009b31m.pdf', partnerName: 'Muster', partnerTestMode: true },
      data: { betrag: raw('1.10'), positionen: [{ text: 'a:{"\\' }, {}], leer: [] },
    });
    const { out, exitCode } = await show(scanId, 80);
    expect(exitCode).toBe(0);
    expect(out).toContain(`Scan:          ${scanId}\nRevision:      2\nStatus:        completed\n`);
    expect(out).toContain('File:          a\ufffd31m.pdf\nPartner:       Muster (in test mode)\n');
    expect(out).toContain(`Data:
{
  "betrag": 1.10,
  "positionen": [
    {
      "text": "a:{\\"\\\\"
    },
    {}
  ],
  "leer": []
}
`);
  });

  it('shows the reason when a run failed', async () => {
    const { scanId } = known({
      status: 'failed',
      data: undefined,
      failureReason: 'unreadable',
      error: 'Nicht lesbar.',
    });
    expect((await show(scanId, 80)).out).toMatch(
      /Status: +failed\nFailure: +unreadable\nService says: +Nicht lesbar\.\n/,
    );
  });

  it('shows the markdown as text when --markdown is given', async () => {
    const { scanId } = known({ markdown: '# Title\n\n\u001b[2Jtext\n' });
    expect(await show(`${scanId} --markdown`)).toMatchObject({ exitCode: 0, out: '# Title\n\n\u001b[2Jtext\n\n' });
    expect((await show(`${scanId} --markdown`, 80)).out).toBe('# Title\n\n\\u001b[2Jtext\n\n');
    const without = known({});
    expect(await show(`${without.scanId} --markdown`)).toMatchObject({ exitCode: 1, out: '' });
    const going = known({ status: 'processing', data: undefined });
    expect(await show(`${going.scanId} --markdown`)).toMatchObject({
      exitCode: 75,
      err: expect.stringContaining('has no markdown yet: it is still processing\n'),
    });
  });

  it('reports the message of the service when the run does not exist', async () => {
    expect(await show('nonsense')).toMatchObject({
      exitCode: 1,
      out: '',
      err: expect.stringMatching(/returned 404: there is no run with this scan id; .*the service says: "/),
    });
  });

  it('names the version of the base URL when the service does not know the path', async () => {
    const { scanId } = known({});
    const wrong = emulator.url.replace(/\/v1$/, '');
    const env = { ...service(), SCANFEED_BASE_URL: wrong };
    expect(await runCommand(get, ['get', scanId], { env })).toMatchObject({
      exitCode: 1,
      out: '',
      err: expect.stringMatching(/that the base URL ends in \/v1, .*"Die Ressource wurde nicht gefunden\."\n$/),
    });
  });

  it('retries temporary failures, and ends with 75 when they persist', async () => {
    const { scanId } = known({});
    emulator.addFault({ kind: 'status', status: 503, next: 2 });
    expect(await show(scanId)).toMatchObject({ exitCode: 0 });
    emulator.addFault({ kind: 'status', status: 503 });
    expect(await show(scanId)).toMatchObject({ exitCode: 75, out: '' });
  });

  it('saves a run with every digit, and reports when it is already stored', async () => {
    const { scanId } = known({ revision: 2, data: { betrag: raw('1.10') } });
    expect(await save(scanId)).toMatchObject({ exitCode: 0, err: 'revision 2 saved\n' });
    expect(await stored(scanId)).toMatchObject({ revision: 2, data: '{"betrag": 1.10}', result_state: 'complete' });
    expect(await save(scanId)).toMatchObject({ exitCode: 0, err: 'revision 2 was already stored\n' });
  });

  it('completes a pending result and its markdown without affecting a running daemon', async () => {
    const { scanId } = known({ markdown: 'text' });
    await commitPending(feed, { scanId });
    expect(await save(`${scanId} --markdown`)).toMatchObject({ exitCode: 0, out: 'text\n', err: 'revision 1 saved\n' });
    expect(await stored(scanId)).toMatchObject({ result_state: 'complete', markdown: 'text' });
    expect(await feed.commit([entryJson({ scanId: 'next' })])).toMatchObject({ kind: 'committed' });
  });

  it('saves what the answer has when it says that it is truncated', async () => {
    const { scanId } = known({ data: { betrag: raw('1.10') }, resultTruncated: true });
    expect(await save(scanId, { SCANFEED_MARKDOWN: 'true' })).toMatchObject({ exitCode: 0, err: 'revision 1 saved\n' });
    expect(await stored(scanId)).toMatchObject({
      data: '{"betrag": 1.10}',
      result_state: 'complete',
      markdown_absent: true,
    });
  });

  it('keeps the stored revision when it is newer', async () => {
    const { scanId } = known({ revision: 1 });
    await feed.commit([entryJson({ scanId, revision: 3 })]);
    expect(await save(scanId)).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('a newer revision is stored'),
    });
    expect(await stored(scanId)).toMatchObject({ revision: 3 });
  });

  it.each([
    [
      'a run that is still processing',
      { status: 'processing', data: undefined },
      75,
      /not saved: it is still processing/,
    ],
    ['a run without its result', { data: undefined, resultTruncated: true }, 1, /not saved: .* without its result/],
    ['a run that leaves the test mode open', { partnerTestMode: undefined }, 1, /not saved: .* in test mode/],
    ['an unusable run', { revision: 0 }, 1, /not saved: .* an unusable run/],
    ['a value that PostgreSQL refuses', { data: { n: raw('1e131072') } }, 1, /not saved: /],
  ])('shows, but does not save, %s', async (_, answer, exitCode, message) => {
    const { scanId, body } = known(answer);
    const result = await save(scanId);
    expect(result).toMatchObject({ exitCode, out: `${body}\n`, err: expect.stringMatching(message) });
    expect(await stored(scanId)).toBeUndefined();
  });

  it('refuses a run when it belongs to another feed or service', async () => {
    const { scanId } = known({});
    await feed.commit([entryJson({ scanId })]);
    await setup.takeFeed({ name: 'other', baseUrl: emulator.url });
    expect(await save(`${scanId} --feed other`)).toMatchObject({
      exitCode: 1,
      out: '',
      err: expect.stringContaining('add --feed default'),
    });
    const elsewhere = { SCANFEED_BASE_URL: 'http://127.0.0.1:9/v1' };
    expect(await save(scanId, elsewhere)).toMatchObject({
      exitCode: 1,
      out: '',
      err: expect.stringContaining('scanfeed forget'),
    });
    expect(await show(`${scanId} --feed default`)).toMatchObject({ exitCode: 64 });
  });
});
