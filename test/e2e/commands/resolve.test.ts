import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import * as resolve from '../../../src/cli/commands/resolve.js';
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

const run = (args: string, env: Record<string, string> = {}) =>
  runCommand(resolve, ['resolve', ...args.split(' ')], {
    env: { DATABASE_URL: given.url, SCANFEED_BASE_URL: emulator.url, SCANFEED_API_KEY: emulator.apiKey, ...env },
  });
/** Creates a pending run and the answer of the single-run endpoint; null for 404. */
const pending = async (answer: Record<string, unknown> | null) => {
  const scanId = `pending-${++scans}`;
  await commitPending(feed, { scanId });
  if (answer !== null) emulator.answerRun(scanId, { body: entryJson({ scanId, ...answer }) });
  return scanId;
};
const stateOf = async (scanId: string) => (await setup.rows(runRow(scanId)))[0];

describe('resolve', () => {
  it('stores pending results with every digit', async () => {
    const one = await pending({ data: { betrag: raw('1.10') } });
    const two = await pending({ revision: 2 });
    expect(await run('--all')).toEqual({
      exitCode: 0,
      out: `${one}, revision 1: resolved\n${two}, revision 2: resolved\n`,
      err: '',
    });
    expect(await stateOf(one)).toMatchObject({ result_state: 'complete', data: '{"betrag": 1.10}', next_try_at: null });
    expect(await stateOf(two)).toMatchObject({ result_state: 'complete', revision: 2 });
    expect((await run('--all')).out).toBe('No results are pending.\n');
  });

  it('reports the reason, and records the attempt for the daemon, when a result is still pending', async () => {
    const missing = await pending(null);
    const going = await pending({ status: 'processing', data: undefined });
    const cut = await pending({ data: undefined, resultTruncated: true });
    const { out, err, exitCode } = await run(`${missing} ${going} ${cut}`);
    expect(out).toContain(
      `${missing}, revision 1: still pending (not_found: the single run (GET /scans/{scanId}) returned 404: `,
    );
    expect(out).toContain(`${going}, revision 1: still pending (processing)\n`);
    expect(out).toContain(`${cut}, revision 1: still pending (still_truncated)\n`);
    expect(err).toBe('scanfeed: 3 of 3 results still pending\n');
    expect(exitCode).toBe(1);
    for (const scanId of [missing, going, cut]) expect(await stateOf(scanId)).toMatchObject({ attempts: 1 });
    expect(await setup.store.duePending('default', 10)).toEqual([]);
  });

  it('loads only the given runs when ids are given', async () => {
    const [one, two] = [await pending({}), await pending({})];
    expect(await run(two)).toMatchObject({ exitCode: 0 });
    expect(await stateOf(one)).toMatchObject({ result_state: 'pending' });
    expect(JSON.parse((await run(`${two} ${one} --json`)).out)).toEqual([
      { scanId: two, revision: 1, outcome: 'complete', reason: null, detail: null },
      { scanId: one, revision: 1, outcome: 'resolved', reason: null, detail: null },
    ]);
  });

  it('keeps the lease and the cursor when a daemon is running', async () => {
    await pending({});
    await run('--all');
    expect(await feed.commit([entryJson({ scanId: 'next' })])).toMatchObject({ kind: 'committed' });
  });

  it('keeps a result pending when PostgreSQL refuses it', async () => {
    const scanId = await pending({ data: { n: raw('1e131072') } });
    expect(await run(scanId)).toMatchObject({ exitCode: 1, out: expect.stringContaining('invalid_result') });
    expect(await stateOf(scanId)).toMatchObject({ result_state: 'pending', pending_reason: 'invalid_result' });
  });

  it('keeps the original when it had to repair the text of a result', async () => {
    const scanId = await pending({ data: { note: raw('"\\u0000"') } });
    expect(await run(scanId)).toMatchObject({ exitCode: 0 });
    expect(await stateOf(scanId)).toMatchObject({ result_state: 'complete', repaired: true });
    const [original] = await setup.rows<{ state: string; payload: string }>(
      sql`SELECT state, convert_from(payload, 'UTF8') AS payload FROM ${tables.quarantine} WHERE scan_id = ${scanId}`,
    );
    expect(original).toMatchObject({ state: 'repaired', payload: expect.stringContaining('\\u0000') });
  });

  it('loads all results when they do not fit into one batch', async () => {
    for (let n = 0; n < 60; n += 1) await pending({});
    const { out, exitCode } = await run('--all');
    expect(exitCode).toBe(0);
    expect(out.match(/: resolved$/gm)).toHaveLength(60);
    expect(await setup.rows(sql`SELECT FROM ${tables.runs} WHERE result_state = 'pending'`)).toEqual([]);
  });

  it('changes nothing when one of the ids is wrong', async () => {
    const scanId = await pending({});
    expect(await run(`${scanId} nonsense`)).toMatchObject({
      exitCode: 1,
      err: 'scanfeed: there is no run nonsense in the database\n',
    });
    await setup.takeFeed({ name: 'other', baseUrl: emulator.url });
    expect(await run(`${scanId} --feed other`)).toMatchObject({
      exitCode: 1,
      err: `scanfeed: the run ${scanId} belongs to the feed default: add --feed default\n`,
    });
    expect(await stateOf(scanId)).toMatchObject({ result_state: 'pending', attempts: 0 });
  });

  it('requires ids or --all', async () => {
    expect(await run('--json')).toMatchObject({ exitCode: 64, err: 'scanfeed: give scan ids or --all\n' });
  });
});

describe('resolve --give-up', () => {
  const giveUp = (args: string, env = {}) => run(`${args} --give-up --yes`, env);

  it('ends the retries and sends no request to the service', async () => {
    const [one, two] = [await pending(null), await pending(null)];
    await setup.rows(sql`UPDATE ${tables.feeds} SET base_url = 'https://gone.test/v1'`);
    const without = { SCANFEED_API_KEY: '', SCANFEED_BASE_URL: '' };
    expect(await giveUp('--all', without)).toEqual({
      exitCode: 0,
      out: `${one}, revision 1: given up\n${two}, revision 1: given up\n`,
      err: '',
    });
    expect(await setup.store.duePending('default', 10)).toEqual([]);
    expect(await setup.store.readStatus('default')).toMatchObject({ pendingResults: 0 });
    expect(await stateOf(one)).toMatchObject({ result_state: 'pending', pending_reason: 'not_loaded' });
    expect((await giveUp('--all', without)).out).toBe('No results are pending.\n');
  });

  it('stays in effect when a retry was in progress, until the run is resolved by id', async () => {
    const scanId = await pending({});
    const other = await pending({});
    await giveUp(scanId);
    await setup.store.postponePending(feed.lease, [{ scanId, revision: 1, reason: 'not_found', nextTryInMs: 0 }]);
    expect((await run('--all')).out).toBe(`${other}, revision 1: resolved\n`);
    expect((await run(scanId)).out).toBe(`${scanId}, revision 1: resolved\n`);
    expect(JSON.parse((await giveUp(`${scanId} --json`)).out)).toEqual([{ scanId, revision: 1, outcome: 'complete' }]);
  });

  it('keeps a revision when it was stored during the confirmation', async () => {
    const scanId = await pending(null);
    expect(await setup.operatorStore.pending.giveUp('default', new Map([[scanId, 2]]))).toEqual([]);
    expect(await setup.store.readStatus('default')).toMatchObject({ pendingResults: 1 });
    expect(await setup.operatorStore.pending.giveUp('default', new Map([[scanId, 1]]))).toEqual([scanId]);
  });

  it('shows the results, and changes nothing, when --yes is missing', async () => {
    const scanId = await pending(null);
    const { exitCode, err } = await run(`${scanId} --give-up`);
    expect(exitCode).toBe(64);
    expect(err).toContain('1 result of the feed default will be given up');
    expect(await setup.store.readStatus('default')).toMatchObject({ pendingResults: 1 });
  });
});

describe('failures of resolve', () => {
  it('reports the failure once, and ends with 75, when the service is unavailable', async () => {
    const scanId = await pending({});
    await pending({});
    const away = 'http://127.0.0.1:1/v1';
    await setup.rows(sql`UPDATE ${tables.feeds} SET base_url = ${away}`);
    const { exitCode, out, err } = await run('--all', { SCANFEED_BASE_URL: away });
    expect(exitCode).toBe(75);
    expect(out).toBe('');
    expect(err).toMatch(/^scanfeed: no response from http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\); [^\n]+\n$/);
    expect(await stateOf(scanId)).toMatchObject({ result_state: 'pending' });
  });

  it('reports the message of the service when the key is rejected', async () => {
    await pending({});
    const { exitCode, err } = await run('--all', { SCANFEED_API_KEY: 'wrong-key' });
    expect(exitCode).toBe(1);
    expect(err).toMatch(/returned 401: .*check the key; the service says: "/);
    expect(err).not.toContain('wrong-key');
  });

  it('sends no request when the feed belongs to another service', async () => {
    const scanId = await pending({});
    await setup.rows(sql`UPDATE ${tables.feeds} SET base_url = 'https://elsewhere.test/v1'`);
    expect(await run('--all')).toMatchObject({ exitCode: 1, err: expect.stringContaining('scanfeed forget') });
    expect(await stateOf(scanId)).toMatchObject({ result_state: 'pending', attempts: 0 });
  });
});
