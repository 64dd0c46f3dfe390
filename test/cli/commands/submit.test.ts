import { setMaxListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import * as submit from '../../../src/cli/commands/submit.js';
import { awaitRuns } from '../../../src/cli/submit/await-runs.js';
import type { SubmittedFile } from '../../../src/cli/submit/submit-files.js';
import { type Emulator, type RequestRecord, startEmulator } from '../../../src/emulator/index.js';
import { httpStatusError } from '../../../src/service/errors/status-errors.js';
import { obeyRetryAfter } from '../../../src/service/http/obey-retry-after.js';
import { runCommand } from '../../support/command.js';
import { rawRun } from '../../support/pages.js';
import { folderOf, pdf } from '../../support/pdfs.js';
import { VirtualClock } from '../../support/virtual-clock.js';

let emulator: Emulator;
let asked: RequestRecord[] = [];

beforeAll(async () => {
  emulator = await startEmulator({ switches: { processingMs: 0, failureShare: 0 } });
  emulator.requests.observe((record) => asked.push(record));
});
afterAll(() => emulator.close());
beforeEach(() => {
  emulator.clearFaults();
  emulator.set({ processingMs: 0, failureShare: 0, maxFileBytes: 1_000_000 });
  asked = [];
});

const TEST = ['--document-type', 'rechnung', '--environment', 'test'];
const run = (args: readonly string[], env: Record<string, string> = {}) =>
  runCommand(submit, ['submit', ...args], {
    env: { SCANFEED_BASE_URL: emulator.url, SCANFEED_API_KEY: emulator.apiKey, ...env },
  });
const json = async (args: readonly string[]) => {
  const { out, ...rest } = await run([...args, '--json']);
  return { ...rest, files: JSON.parse(out) as SubmittedFile[] };
};
/** A submitted file whose run is processing. */
const submitted = {
  outcome: 'submitted',
  status: 'processing',
  idempotencyKey: 'key',
  statusUrl: null,
  failureReason: null,
  error: null,
  problem: null,
} as const;
let made = 0;
const other = () => pdf(`number ${++made}`);

describe('submit', () => {
  it('submits each file once and reports repeats', async () => {
    const { path } = await folderOf({ 'a.pdf': other(), 'b.pdf': other() });
    const first = await run([path('a.pdf'), path('b.pdf'), ...TEST]);
    expect(first).toMatchObject({ exitCode: 0, err: '2 files: 2 submitted\n' });
    const lines = first.out.split('\n').sort().join('\n'); // each is printed as soon as it is through
    expect(lines).toMatch(/^\n\S+a\.pdf: submitted as [0-9a-f-]{36}\n\S+b\.pdf: submitted as [0-9a-f-]{36}$/);
    const again = await run([path('a.pdf'), ...TEST]);
    expect(again).toMatchObject({ exitCode: 0, err: '1 file: 1 submitted before\n' });
    expect(again.out).toMatch(/a\.pdf: submitted before as [0-9a-f-]{36}: completed\n$/);
  });

  it('submits the PDFs of a folder, and the same content once', async () => {
    const same = other();
    const { path } = await folderOf({
      ...{ 'x.pdf': same, 'Y.PDF': other(), 'z.pdf': same },
      ...{ '.hidden.pdf': 'no PDF', 'notes.txt': 'no PDF', 'deeper/d.pdf': 'no PDF' },
    });
    const { files, exitCode } = await json([path(), path('x.pdf'), ...TEST]);
    expect(exitCode).toBe(0);
    expect(files.map(({ file, outcome }) => [file, outcome])).toEqual([
      [path('Y.PDF'), 'submitted'],
      [path('x.pdf'), 'submitted'],
      [path('z.pdf'), 'repeated'],
    ]);
    expect(files[2]?.scanId).toBe(files[1]?.scanId);
    expect(asked).toHaveLength(2);
  });

  it('submits again when content, document type or environment differ', async () => {
    const { path, write } = await folderOf({ 'a.pdf': other() });
    const keyFor = async (type: string, environment: string) => {
      const { files } = await json([path('a.pdf'), '--document-type', type, '--environment', environment]);
      expect(files).toMatchObject([{ outcome: 'submitted' }]);
      return files[0]?.idempotencyKey;
    };
    const keys = [
      await keyFor('rechnung', 'test'),
      await keyFor('lieferschein', 'test'),
      await keyFor('rechnung', 'prod'),
    ];
    await write('a.pdf', other());
    expect(new Set([...keys, await keyFor('rechnung', 'test')]).size).toBe(4);
  });

  it('checks all files first and sends nothing when one of them is not a PDF', async () => {
    const { path } = await folderOf({ 'good.pdf': other(), 'empty.pdf': '', 'text.pdf': 'hello', 'none/x.txt': '' });
    const { exitCode, out, err } = await run([path(), path('missing.pdf'), path('none'), '/dev/null', ...TEST]);
    expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' });
    expect(err).toBe(
      [
        `${path('empty.pdf')}: it is empty`,
        `${path('text.pdf')}: it is not a PDF: it does not start with %PDF-`,
        `${path('missing.pdf')}: there is no such file or folder`,
        `${path('none')}: the folder contains no .pdf files`,
        '/dev/null: it is not a file',
        'scanfeed: 5 of 6 files refused; nothing was sent\n',
      ].join('\n'),
    );
    expect(asked).toEqual([]);
  });

  it('continues with the others when one is refused, and quotes the service', async () => {
    emulator.set({ maxFileBytes: 1000 });
    const { path } = await folderOf({ 'a.pdf': `${other()}${'x'.repeat(2000)}`, 'b.pdf': other(), 'c.pdf': other() });
    const { exitCode, out, err } = await run([path(), ...TEST]);
    expect(exitCode).toBe(1);
    expect(out).toMatch(/^(\S+: submitted as \S+\n){2}$/);
    expect(err).toMatch(
      /^\S+a\.pdf: not submitted: .* returned 400: .*not too large.*; the service says: "Die Datei ist zu groß\."\n3 files: 2 submitted, 1 not submitted\nscanfeed: 1 of 3 files without a result\n$/,
    );
  });

  it('retries temporary failures under the same key', async () => {
    const { path } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ kind: 'status', status: 503, next: 2, operation: 'submit' });
    emulator.addFault({ kind: 'reset', next: 1, operation: 'submit' });
    expect(await json([path('a.pdf'), ...TEST])).toMatchObject({ exitCode: 0, files: [{ outcome: 'submitted' }] });
    expect(asked).toHaveLength(4);
  });

  it('reports the reason and length of a pause', async () => {
    const { path } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ kind: 'status', status: 503, retryAfter: 3600, next: 1, operation: 'submit' });
    const { exitCode, err } = await run([path('a.pdf'), ...TEST]);
    expect(exitCode).toBe(0);
    expect(err).toMatch(/^\S.* returned 503: .*; retrying in 60 min\n1 file: 1 submitted\n$/);
  });

  it('creates one run when the answer to the first attempt is lost', async () => {
    const { path } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ kind: 'cut', next: 1, operation: 'submit' });
    const { files, exitCode } = await json([path('a.pdf'), ...TEST]);
    expect({ exitCode, files }).toMatchObject({ exitCode: 0, files: [{ outcome: 'repeated' }] });
    expect(asked.map(({ scanId }) => scanId)).toEqual([files[0]?.scanId, files[0]?.scanId]);
  });

  it('does not send a file when it was changed after its check', async () => {
    const { path } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ kind: 'status', status: 503, next: 1, operation: 'submit' });
    const end = emulator.requests.observe(() => writeFileSync(path('a.pdf'), `${other()}, changed`));
    const { files, exitCode } = await json([path('a.pdf'), ...TEST]);
    end();
    expect({ exitCode, files }).toMatchObject({ exitCode: 1, files: [{ problem: { kind: 'file_changed' } }] });
    expect(asked).toHaveLength(1);
  });

  it('gives up with 75 and the remedy when the service stays unavailable', async () => {
    const { path } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ kind: 'status', status: 503, operation: 'submit' });
    expect(await run([path('a.pdf'), ...TEST])).toMatchObject({
      exitCode: 75,
      err: expect.stringContaining('repeat the command to submit the rest; nothing is submitted twice\n'),
    });
  });

  it('treats a maintenance page as an unavailable service', async () => {
    const { path } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ kind: 'html', operation: 'submit' });
    expect(await json([path('a.pdf'), ...TEST])).toMatchObject({
      exitCode: 75,
      files: [{ outcome: 'unknown', problem: { kind: 'not_json', passing: true } }],
    });
  });

  it.each([
    ['a refused key', { SCANFEED_API_KEY: 'another' }, [], 1, /returned 401: .*"API-Schlüssel fehlt/],
    ['an unknown document type', {}, ['--document-type', 'nonsense'], 1, /returned 404: .*slug.*; the service says: "/],
    [
      'a service that is away',
      { SCANFEED_BASE_URL: 'http://127.0.0.1:9/v1' },
      [],
      75,
      /no response from .*ECONNREFUSED/,
    ],
  ])('sends no more files after %s, which all would meet', async (_, env, args, exitCode, message) => {
    const names = Array.from({ length: 8 }, (_, index) => `${index}.pdf`);
    const { path } = await folderOf(Object.fromEntries(names.map((name) => [name, other()])));
    const result = await run([path(), ...TEST, '--concurrency', '2', ...args], env);
    expect(result.exitCode).toBe(exitCode);
    expect(result.out).toBe('');
    expect(result.err).toMatch(message);
    expect(result.err.match(/: not submitted: /g)).toHaveLength(2);
    expect(result.err).toContain(
      '8 files: 2 not submitted, 6 not sent\nscanfeed: 8 of 8 files without a result; the others were not sent, since they would probably get the same error',
    );
  });

  it('creates another run with --new only when the run has failed, and once when repeated', async () => {
    emulator.set({ failureShare: 1 });
    const { path } = await folderOf({ 'bad.pdf': other() });
    const [failed] = (await json([path(), ...TEST])).files;
    const repeat = await run([path(), ...TEST]);
    expect(repeat).toMatchObject({ exitCode: 1, out: expect.stringMatching(/: failed; --new submits it again\n$/) });
    emulator.set({ failureShare: 0 });
    const resubmitted = await json([path(), ...TEST, '--new']);
    expect(resubmitted).toMatchObject({ exitCode: 0, files: [{ outcome: 'submitted' }] });
    expect(resubmitted.files[0]?.scanId).not.toBe(failed?.scanId);
    const again = await json([path(), ...TEST, '--new']);
    expect(again).toMatchObject({
      exitCode: 0,
      files: [{ outcome: 'repeated', scanId: resubmitted.files[0]?.scanId }],
    });
  });

  it('uses another key with --new when the first was used for another request', async () => {
    const { path } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ kind: 'status', status: 409, error: 'Konflikt', next: 2, operation: 'submit' });
    const refused = await run([path(), ...TEST]);
    const explained = /409.*"Konflikt"; probably this document was submitted before.*first: --new creates another/;
    expect(refused).toMatchObject({ exitCode: 1, err: expect.stringMatching(explained) });
    expect(await json([path(), ...TEST, '--new'])).toMatchObject({ exitCode: 0, files: [{ outcome: 'submitted' }] });
  });

  it.each([[[]], [['--new']]])('creates no second run with %j when a 409 follows a lost answer', async (args) => {
    const { path } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ kind: 'cut', next: 1, operation: 'submit' });
    emulator.addFault({ kind: 'status', status: 409, next: 1, operation: 'submit' });
    const { exitCode, files } = await json([path(), ...TEST, ...args]);
    const message = expect.stringMatching(
      /409.*; an earlier attempt of this command got no response and may have created/,
    );
    expect({ exitCode, files }).toMatchObject({ exitCode: 1, files: [{ outcome: 'unknown', problem: { message } }] });
    expect(asked).toHaveLength(2);
  });

  it('ends after two uploads with --new when each key gets a 409, and quotes the service', async () => {
    const { path } = await folderOf({ 'a.pdf': other(), 'b.pdf': other(), 'c.pdf': other() });
    const error = 'Kein Schema für diesen Dokumenttyp.';
    emulator.addFault({ kind: 'status', status: 409, error, operation: 'submit' });
    const { exitCode, err } = await run([path(), ...TEST, '--new', '--concurrency', '1']);
    expect(exitCode).toBe(1);
    expect(err).toMatch(/the service says: "Kein Schema .*"; two Idempotency-Keys were refused: .* no ready schema/);
    expect(err).toContain('3 files: 2 not submitted, 1 not sent\n');
    expect(asked).toHaveLength(4);
  });

  it('ends after two files when an unlisted status may be about a missing schema', async () => {
    const { path } = await folderOf({ 'a.pdf': other(), 'b.pdf': other(), 'c.pdf': other() });
    emulator.addFault({ kind: 'status', status: 422, error: 'Kein Schema.', operation: 'submit' });
    const { exitCode, err } = await run([path(), ...TEST, '--concurrency', '1']);
    expect(exitCode).toBe(1);
    expect(err).toMatch(/returned 422: .* no ready schema in this environment .*; the service says: "Kein Schema\."/);
    expect(err).toContain('3 files: 2 not submitted, 1 not sent\n');
    expect(asked).toHaveLength(2);
  });

  it.each([413, 415])('continues with the others when a file gets %i', async (status) => {
    const { path } = await folderOf({ 'a.pdf': other(), 'b.pdf': other(), 'c.pdf': other() });
    emulator.addFault({ kind: 'status', status, next: 2, operation: 'submit' });
    const { err } = await run([path(), ...TEST, '--concurrency', '1']);
    expect(err).toContain('3 files: 1 submitted, 2 not submitted\n');
  });

  it.each([[202], [200]])('needs only the scan id of a %i', async (status) => {
    const { path } = await folderOf({ 'a.pdf': other() });
    const [{ scanId } = { scanId: null }] = (await json([path(), ...TEST])).files;
    const body = JSON.stringify({ scanId });
    emulator.addFault({
      kind: 'answer',
      status,
      body,
      headers: { 'content-type': 'application/json' },
      operation: 'submit',
    });
    const { exitCode, files } = await json([path(), ...TEST, '--new', '--wait']);
    expect({ exitCode, files }).toMatchObject({
      exitCode: 0,
      files: [{ outcome: status === 202 ? 'submitted' : 'repeated', scanId, status: 'completed', statusUrl: null }],
    });
  });

  it('submits again with --new when a repeat without a status has failed', async () => {
    emulator.set({ failureShare: 1 });
    const { path } = await folderOf({ 'a.pdf': other() });
    const [{ scanId } = { scanId: null }] = (await json([path(), ...TEST])).files;
    emulator.set({ failureShare: 0 });
    const body = JSON.stringify({ scanId });
    emulator.addFault({
      kind: 'answer',
      status: 200,
      body,
      headers: { 'content-type': 'application/json' },
      next: 1,
      operation: 'submit',
    });
    const { files } = await json([path(), ...TEST, '--new']);
    expect(files).toMatchObject([{ outcome: 'submitted', scanId: expect.not.stringMatching(String(scanId)) }]);
  });

  it.each([
    ['cut', { kind: 'cut' }],
    ['without a scan id', { kind: 'answer', status: 202, body: '{}', headers: { 'content-type': 'application/json' } }],
    ['empty', { kind: 'empty' }],
    ['half of a 200', { kind: 'answer', status: 200, body: '{"sca', headers: { 'content-type': 'application/json' } }],
    ['an unlisted success', { kind: 'answer', status: 201, body: '{"scanId":"a"}' }],
    ['too large', { kind: 'answer', status: 202, body: ' '.repeat(1_100_000) }],
    ['a 500', { kind: 'status', status: 500 }],
    ['missing', { kind: 'reset' }],
  ] as const)('says that a file may have been submitted when the response is %s', async (_, fault) => {
    const { path } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ ...fault, operation: 'submit' });
    const { err } = await run([path(), ...TEST]);
    expect(err).toMatch(
      /a\.pdf: may or may not have been submitted: .*; repeat the command, which finds the run if there is one\n/,
    );
    expect(err).toContain('1 file: 1 possibly submitted\n');
    expect(err).not.toContain('no ready schema');
  });

  it('waits until all runs have ended, and reports failed ones', async () => {
    emulator.set({ processingMs: 300 });
    const { path } = await folderOf({ 'a.pdf': other(), 'b.pdf': other() });
    const done = await run([path(), ...TEST, '--wait']);
    expect(done).toMatchObject({ exitCode: 0, err: '2 files: 2 submitted, 2 completed\n' });
    expect(done.out.match(/\.pdf: [0-9a-f-]{36}: completed\n/g)).toHaveLength(2);
    emulator.set({ failureShare: 1 });
    const bad = await folderOf({ 'c.pdf': other() });
    const { exitCode, files, err } = await json([bad.path(), ...TEST, '--wait']);
    expect(exitCode).toBe(1);
    expect(files).toMatchObject([{ outcome: 'submitted', status: 'failed', failureReason: expect.any(String) }]);
    expect(err).toBe('1 file: 1 submitted, 1 failed\nscanfeed: 1 of 1 file without a result\n');
  });

  it('waits through temporary failures, gives up a run that stays unreachable, and reports its outage once', async () => {
    emulator.set({ processingMs: 100 });
    const { path, write } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ kind: 'status', status: 500, next: 4, operation: 'run' });
    const passed = await run([path(), ...TEST, '--wait']);
    expect(passed.exitCode).toBe(0);
    expect(passed.err).toMatch(
      /^the single run .* returned 500: .*; retrying in 8\.0 s\n1 file: 1 submitted, 1 completed\n$/,
    );
    await write('a.pdf', other());
    emulator.addFault({ kind: 'status', status: 500, operation: 'run' });
    const given = await run([path(), ...TEST, '--wait']);
    expect(given.exitCode).toBe(75);
    expect(given.err).toMatch(
      /^the single run .* returned 500: .*; retrying in 8\.0 s\n\S+: \S+: state unknown: .* returned 500: .*\n1 file: /,
    );
  });

  it('waits for a run that the service does not find at first', async () => {
    const { path } = await folderOf({ 'a.pdf': other() });
    emulator.addFault({ kind: 'status', status: 404, next: 3, operation: 'run' });
    const { files, exitCode } = await json([path(), ...TEST, '--wait']);
    expect({ exitCode, files }).toMatchObject({ exitCode: 0, files: [{ status: 'completed' }] });
  });

  it('spaces the requests for many runs', async () => {
    const clock = new VirtualClock();
    const requests: number[] = [];
    const service = {
      readPage: () => Promise.reject(new Error('not expected')),
      readRun: async (scanId: string) => {
        requests.push(clock.monotonic());
        return rawRun(JSON.stringify({ scanId, status: requests.length <= 40 ? 'processing' : 'completed' }));
      },
    };
    const ignore = () => undefined;
    const { signal } = new AbortController();
    setMaxListeners(0, signal);
    const ended = awaitRuns(
      Array.from({ length: 20 }, (_, number) => ({ ...submitted, file: `${number}.pdf`, scanId: `scan-${number}` })),
      { service, clock, signal, concurrency: 4, onFile: ignore, onPause: ignore },
    );
    expect(await clock.run(ended)).toMatchObject(Array(20).fill({ status: 'completed' }));
    expect(requests).toHaveLength(60);
    for (const [index, at] of requests.entries())
      if (index > 0) expect(at - (requests[index - 1] ?? 0)).toBeGreaterThanOrEqual(95);
  });

  it('obeys and reports a pause that the service requests while it waits, once for all runs', async () => {
    const clock = new VirtualClock();
    const requests: number[] = [];
    const service = {
      readPage: () => Promise.reject(new Error('not expected')),
      readRun: async (scanId: string) => {
        requests.push(clock.monotonic());
        if (requests.length <= 2) throw httpStatusError({ operation: 'run', status: 429, retryAfterMs: 3_600_000 });
        return rawRun(JSON.stringify({ scanId, status: 'completed' }));
      },
    };
    const { signal } = new AbortController();
    const reported: string[] = [];
    const options = { service: obeyRetryAfter(service, clock), clock, signal, concurrency: 1 };
    const ended = awaitRuns(
      ['a', 'b', 'c'].map((scanId) => ({ ...submitted, file: scanId, scanId })),
      { ...options, onFile: () => undefined, onPause: (line) => void reported.push(line) },
    );
    expect(await clock.run(ended)).toMatchObject(Array(3).fill({ status: 'completed' }));
    expect(reported).toHaveLength(2);
    for (const line of reported) expect(line).toMatch(/returned 429: .*; retrying in 60 min$/);
    expect(requests.filter((at) => at < 3_600_000)).toHaveLength(1);
  });

  it.each([
    ['no document type', ['x.pdf', '--environment', 'test'], /required option '--document-type <slug>'/],
    ['an empty document type', ['x.pdf', '--environment', 'test', '--document-type', ' '], /slug of a document type/],
    ['no environment', ['x.pdf', '--document-type', 'x'], /required option '--environment <name>'/],
    ['both environments', ['x.pdf', '--document-type', 'x', '--environment', 'all'], /Allowed choices are prod, test/],
    ['no file', TEST, /missing required argument 'files'/],
    ['too much at once', ['x.pdf', ...TEST, '--concurrency', '17'], /from 1 to 16/],
  ])('is wrong usage with %s', async (_, args, message) => {
    expect(await run(args)).toMatchObject({ exitCode: 64, out: '', err: expect.stringMatching(message) });
    expect(asked).toEqual([]);
  });

  it('names all missing settings, and needs no database', async () => {
    const { exitCode, err } = await runCommand(submit, ['submit', 'x.pdf', ...TEST], { env: {} });
    expect(exitCode).toBe(78);
    expect(err).toContain('SCANFEED_BASE_URL is not set');
    expect(err).toContain('SCANFEED_API_KEY is not set');
    expect(err).not.toContain('DATABASE_URL');
  });
});
