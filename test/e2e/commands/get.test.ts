import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import * as get from '../../../src/cli/commands/get.js';
import { type Emulator, startEmulator } from '../../../src/emulator/index.js';
import { runCommand } from '../../support/command.js';
import { entryJson, raw } from '../../support/entries.js';

let emulator: Emulator;
let scans = 0;

beforeAll(async () => {
  emulator = await startEmulator({ history: 0 });
});
afterAll(() => emulator.close());
beforeEach(() => emulator.clearFaults());

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
      err: expect.stringMatching(/answered 404: there is no run with this scan id; .*the service says: "/),
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

  it('requires a feeds file when --feed is given', async () => {
    expect(await show('known --feed default')).toMatchObject({ exitCode: 64 });
  });
});
