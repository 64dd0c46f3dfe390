import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as verify from '../../../src/cli/commands/verify.js';
import { type Emulator, startEmulator } from '../../../src/emulator/index.js';
import { type CommandSetting, runCommand } from '../../support/command.js';
import { entryJson, raw } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, tables, useStore } from '../../support/store.js';
import { syncToTheEnd } from '../../support/sync-to-the-end.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const HOUR = 3_600_000;
let emulator: Emulator;
let number = 0;

beforeEach(async () => {
  emulator = await startEmulator({ history: 0 });
  await setup.rows(
    sql`TRUNCATE ${tables.feeds}, ${tables.runs}, ${tables.quarantine}, ${tables.cursorHistory}, ${tables.passes}, ${tables.deletedRuns}`,
  );
});
afterEach(() => emulator.close());

const hoursAgo = (hours: number) => new Date(Date.now() - hours * HOUR).toISOString();
/** Delivers an entry of an hour ago, or of another time, and returns its scan id. */
const deliver = (over: Record<string, unknown> = {}) => {
  const fields = { scanId: `scan-${++number}`, deliveredAt: hoursAgo(1), ...over };
  emulator.appendRaw([{ text: entryJson(fields), deliveredAt: fields.deliveredAt }]);
  return fields.scanId;
};
const sync = async () => {
  await syncToTheEnd(emulator, setup.store, 'default');
  await setup.rows(sql`UPDATE ${tables.feeds} SET base_url = ${emulator.url}`);
};
const run = (args: string, { env, ...setting }: Partial<CommandSetting> = {}) =>
  runCommand(verify, ['verify', ...args.split(' ')], {
    env: { DATABASE_URL: given.url, SCANFEED_BASE_URL: emulator.url, SCANFEED_API_KEY: emulator.apiKey, ...env },
    ...setting,
  });
const differences = async (args = '--since 24h') => {
  const { out } = await run(`${args} --json`);
  return (JSON.parse(out) as { differences: Record<string, unknown>[] }).differences;
};

describe('verify', () => {
  it('finds no differences when the database matches the feed', async () => {
    for (let n = 0; n < 450; n += 1) deliver();
    deliver({ status: 'failed', data: undefined, failureReason: 'unreadable', error: 'Nicht lesbar.' });
    await sync();
    const { exitCode, out } = await run('--since 24h');
    expect(out).toMatch(/^451 entries compared, delivered from \S+ to \S+\n {2}451 as in the feed, or newer\n$/);
    expect(exitCode).toBe(0);
  });

  it('reports missing runs and older revisions', async () => {
    const [lost, old] = [deliver(), deliver()];
    deliver({ scanId: old, revision: 3 });
    await sync();
    await setup.rows(sql`DELETE FROM ${tables.runs} WHERE scan_id IN (${lost}, ${old})`);
    const feed = await setup.takeFeed({ name: 'another', baseUrl: emulator.url });
    await feed.commit([entryJson({ scanId: old, revision: 2 })]);
    const { exitCode, out, err } = await run('--since 24h');
    expect(out).toContain(`${lost}, revision 1: missing\n`);
    expect(out).toContain(`${old}, revision 3: the database has revision 2\n`);
    expect(out).toMatch(/\n {2}1 as in the feed, or newer\n {2}1 missing\n {2}1 in an older revision\n$/);
    expect(err).toBe('scanfeed: 2 of 3 entries differ from the feed\n');
    expect(exitCode).toBe(1);
  });

  it.each([
    ['data', sql`data = '{"betrag": 1.1, "nummer": 12345678901234567891}'`],
    ['status', sql`status = 'failed'`],
    ['failureReason', sql`failure_reason = 'other'`],
    ['error', sql`error = 'other'`],
    ['environment', sql`environment = 'test'`],
    ['documentType', sql`document_type_slug = 'lieferschein'`],
    ['documentType', sql`document_type_slug = NULL`],
    ['partnerTestMode', sql`partner_test_mode = true`],
    ['data', sql`data = NULL`],
    ['documentType', sql`document_type_name = 'Lieferschein'`],
    ['fileName', sql`file_name = 'other.pdf'`],
    ['partnerName', sql`partner_name = 'Other GmbH'`],
    ['ocrConfidence', sql`ocr_confidence = 0.5`],
    ['submittedAt', sql`submitted_at = submitted_at - interval '1 ms'`],
    ['completedAt', sql`completed_at = completed_at + interval '1 ms'`],
    ['deliveredAt', sql`delivered_at = delivered_at - interval '1 ms'`],
    ['partnerName', sql`partner_name = NULL`],
    ['ocrConfidence', sql`ocr_confidence = NULL`],
    ['submittedAt', sql`submitted_at = NULL`],
    ['completedAt', sql`completed_at = NULL`],
    ['deliveredAt', sql`delivered_at = NULL`],
  ])('reports a difference when the same revision has other content: %s', async (field, change) => {
    const scanId = deliver();
    deliver();
    await sync();
    await setup.rows(sql`UPDATE ${tables.runs} SET ${change} WHERE scan_id = ${scanId}`);
    expect(await differences()).toMatchObject([{ scanId, revision: 1, what: 'other_content', differing: [field] }]);
    expect((await run('--since 24h')).out).toContain(`${scanId}, revision 1: other content: ${field}\n`);
  });

  it('compares the markdown when the feed lists it', async () => {
    const scanId = deliver({ markdown: '# Rechnung' });
    deliver({ markdown: '# Mahnung' });
    await sync();
    await setup.rows(sql`UPDATE ${tables.runs} SET markdown = '# Gutschrift' WHERE scan_id = ${scanId}`);
    expect(await differences()).toMatchObject([{ scanId, differing: ['markdown'] }]);
  });

  it('reports stored runs where the feed lists nothing at all', async () => {
    const fields = { submittedAt: hoursAgo(2), completedAt: hoursAgo(2), deliveredAt: hoursAgo(2) };
    const feed = await setup.takeFeed({ baseUrl: emulator.url });
    await feed.commit([
      entryJson({ scanId: 'a', ...fields }),
      entryJson({ scanId: 'b', ...fields }),
      entryJson({ scanId: 'test', environment: 'test', ...fields }),
      entryJson({ scanId: 'undated', ...fields, deliveredAt: null }),
      entryJson({ scanId: 'submitted before', ...fields, submittedAt: hoursAgo(30) }),
    ]);
    await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = clock_timestamp(), complete_from = NULL`);
    const { exitCode, out, err } = await run('--since 24h');
    expect(exitCode).toBe(1);
    expect(out).toContain('\n  2 in the database, not listed by the feed\n');
    expect(err).toMatch(
      /the feed lists no entry delivered since \S+, but the database has 2 runs from that time on: .*Ask the operators/,
    );
    const { summary } = JSON.parse((await run('--since 24h --json')).out);
    expect(summary).toMatchObject({ compared: 0, notListed: 2 });
    expect((await run(`--since 24h --until ${hoursAgo(4)}`)).exitCode).toBe(75);
    deliver({ scanId: 'c', deliveredAt: hoursAgo(3) });
    expect((await run('--since 24h')).err).toBe('scanfeed: 1 of 1 entry differ from the feed\n');
  });

  it('compares an entry when its delivery time is far in the future', async () => {
    const scanId = deliver();
    const wrong = 'dated wrong';
    const text = entryJson({ scanId: wrong, deliveredAt: '2038-01-19T03:14:07Z' });
    emulator.appendRaw([{ text, deliveredAt: hoursAgo(1) }]);
    deliver({ deliveredAt: hoursAgo(0.9) });
    await sync();
    await setup.rows(sql`DELETE FROM ${tables.runs} WHERE scan_id IN (${scanId}, ${wrong})`);
    expect((await differences()).map((found) => found.scanId)).toEqual([scanId, wrong]);
  });

  it('ignores omitted fields, but reports a complete row without data', async () => {
    const scanId = deliver({
      partnerName: undefined,
      partnerTestMode: undefined,
      documentType: { slug: null, name: null },
    });
    const truncated = deliver({ data: undefined, resultTruncated: true });
    await sync();
    await setup.rows(sql`UPDATE ${tables.runs} SET partner_name = 'Muster', partner_test_mode = true,
      document_type_slug = 'rechnung' WHERE scan_id = ${scanId}`);
    await setup.rows(sql`UPDATE ${tables.runs} SET result_state = 'complete', pending_reason = NULL, pending_since = NULL,
      next_try_at = NULL WHERE scan_id = ${truncated}`);
    expect(await differences()).toMatchObject([{ scanId: truncated, differing: ['data'] }]);
  });

  it('ends with 75 and the remedy when it could compare nothing', async () => {
    deliver({ deliveredAt: hoursAgo(3) });
    await sync();
    expect(await run('--since 1h')).toMatchObject({
      exitCode: 75,
      err: expect.stringMatching(/nothing was compared: the feed lists no entry .* Give an earlier --since\n$/),
    });
    await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = clock_timestamp() - interval '4 hours'`);
    expect(await run('--since 24h')).toMatchObject({
      exitCode: 75,
      out: expect.stringContaining('0 entries compared'),
      err: expect.stringContaining('1 entry was delivered after the time up to which the data is complete. Try again'),
    });
  });

  it('compares numbers by value when they have more digits than JavaScript supports', async () => {
    const scanId = deliver({ data: { nummer: raw('12345678901234567890'), betrag: raw('1.10') } });
    await sync();
    const set = (data: string) => setup.rows(sql`UPDATE ${tables.runs} SET data = ${data}::jsonb`);
    await set('{"betrag": 1.1, "nummer": 12345678901234567890}');
    expect(await differences()).toEqual([]);
    await set('{"betrag": 1.10, "nummer": 12345678901234567891}');
    expect(await differences()).toMatchObject([{ scanId, differing: ['data'] }]);
  });

  it('reports open entries of the quarantine, ignores discarded ones, and reports all others as missing', async () => {
    const open = deliver({ status: 'unheard of' });
    const discarded = deliver({ status: 'unheard of' });
    const refused = deliver({ data: { n: raw('1e131072') } });
    const nameless = deliver({ scanId: 7 });
    await sync();
    await setup.rows(sql`UPDATE ${tables.quarantine} SET state = 'discarded' WHERE scan_id = ${discarded}`);
    expect(nameless).toBe(7);
    const found = await differences();
    expect(found).toHaveLength(3);
    expect(found).toContainEqual(expect.objectContaining({ scanId: open, what: 'quarantined' }));
    expect(found).toContainEqual(expect.objectContaining({ scanId: refused, what: 'quarantined' }));
    expect(found).toContainEqual(expect.objectContaining({ scanId: null, what: 'quarantined' }));
    await setup.rows(sql`DELETE FROM ${tables.quarantine}`);
    expect((await differences()).map(({ what }) => what)).toEqual(['missing', 'missing', 'missing', 'missing']);
  });

  it('compares the rest of a page when PostgreSQL refuses a value', async () => {
    const scanIds = [deliver(), deliver(), deliver({ data: { n: raw('1e131072') } }), deliver(), deliver()];
    await sync();
    await setup.rows(sql`DELETE FROM ${tables.runs} WHERE scan_id IN (${scanIds[1]}, ${scanIds[4]})`);
    expect((await differences()).map(({ scanId, what }) => [scanId, what])).toEqual([
      [scanIds[1], 'missing'],
      [scanIds[4], 'missing'],
      [scanIds[2], 'quarantined'],
    ]);
  });

  it('ignores repaired runs, newer stored revisions and pending results', async () => {
    deliver({ fileName: raw('"a\\u0000b.pdf"'), data: { text: raw('"\\ud800"') } });
    const newer = deliver();
    const cut = deliver({ data: undefined, resultTruncated: true });
    await sync();
    await setup.rows(sql`UPDATE ${tables.runs} SET revision = 2 WHERE scan_id = ${newer}`);
    const { out, exitCode } = await run('--since 24h');
    expect(out).toMatch(
      /\n {2}2 as in the feed, or newer\n {2}1 pending\n {2}1 truncated in the feed: data not compared\n$/,
    );
    expect(exitCode).toBe(0);
    expect(await setup.rows(sql`SELECT result_state FROM ${tables.runs} WHERE scan_id = ${cut}`)).toEqual([
      { result_state: 'pending' },
    ]);
  });

  it('does not compare data of a pending result, even if the feed now delivers it', async () => {
    deliver();
    await sync();
    await setup.rows(sql`UPDATE ${tables.runs} SET data = NULL, result_state = 'pending', pending_reason = 'not_loaded',
      pending_since = now(), next_try_at = now()`);
    expect(await run('--since 24h')).toMatchObject({ exitCode: 0, out: expect.stringContaining('\n  1 pending\n') });
  });

  it('ignores runs that were erased or are older than the retention', async () => {
    const [erased, expired, lost] = [deliver(), deliver({ deliveredAt: hoursAgo(50) }), deliver()];
    await sync();
    await setup.rows(sql`DELETE FROM ${tables.runs} WHERE scan_id IN (${expired}, ${lost})`);
    await setup.operatorStore.deletedRuns.erase([erased]);
    const kept = await run('--since 72h', { env: { SCANFEED_RETENTION_DAYS: 'runs=2' } });
    expect(kept).toMatchObject({ exitCode: 1, out: expect.stringContaining('  2 erased, or past the retention\n') });
    expect(kept.out).toContain(`${lost}, revision 1: missing\n`);
    expect(await differences('--since 72h')).toMatchObject([{ scanId: expired }, { scanId: lost }]);
  });

  it('ignores unusable entries of an erased run', async () => {
    const bad = [deliver({ status: 'odd' }), deliver({ revision: 0 }), deliver({ data: { n: raw('1e131072') } })];
    const nameless = deliver({ scanId: ['nameless'] });
    await sync();
    await setup.operatorStore.deletedRuns.erase([...bad, ...(nameless as unknown as string[])]);
    expect(await run('--since 24h')).toMatchObject({
      exitCode: 0,
      out: expect.stringMatching(/\n {2}1 discarded from quarantine\n {2}3 erased, or past the retention\n$/),
    });
  });

  it('ignores deliveries after the time up to which the data is complete', async () => {
    const due = deliver({ deliveredAt: hoursAgo(3) });
    await sync();
    await setup.rows(sql`DELETE FROM ${tables.runs} WHERE scan_id = ${due}`);
    await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = clock_timestamp() - interval '2 hours'`);
    deliver({ deliveredAt: hoursAgo(1) });
    expect(await differences()).toMatchObject([{ scanId: due, what: 'missing' }]);
    expect((await run('--since 24h')).out).toContain(
      '  1 not compared: delivered after the time up to which the data is complete\n',
    );
  });

  it('compensates for the difference when the clocks differ', async () => {
    emulator.set({ clockOffsetMs: -6 * HOUR });
    deliver({ deliveredAt: hoursAgo(9) }); // by its own clock: three hours ago
    await sync();
    await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = clock_timestamp() - interval '2 hours'`);
    deliver({ deliveredAt: hoursAgo(7) }); // an hour ago
    const { out, exitCode } = await run('--since 24h');
    expect(out).toContain('1 entry compared');
    expect(exitCode).toBe(0);
  });

  it('reads from the time at which the feed begins, at the earliest, to --until', async () => {
    const early = deliver({ deliveredAt: hoursAgo(10) });
    const middle = deliver({ deliveredAt: hoursAgo(6) });
    const late = deliver({ deliveredAt: hoursAgo(2) });
    await sync();
    await setup.rows(sql`DELETE FROM ${tables.runs}`);
    const scans = async (args: string) => (await differences(args)).map(({ scanId }) => scanId);
    expect(await scans('--since 24h')).toEqual([early, middle, late]);
    expect(await scans('--since 7h')).toEqual([middle, late]);
    expect(await scans(`--since 24h --until ${hoursAgo(4)}`)).toEqual([early, middle]);
    await setup.rows(sql`UPDATE ${tables.feeds} SET complete_from = clock_timestamp() - interval '8 hours'`);
    expect(await scans('--since 24h')).toEqual([middle, late]);
    expect((await run('--since 24h')).err).toMatch(
      /^The feed default is complete from \S+Z; the comparison starts there\.\n/,
    );
  });

  it('writes nothing', async () => {
    const scanId = deliver();
    deliver({ status: 'unheard of' });
    deliver({ data: undefined, resultTruncated: true });
    await sync();
    await setup.rows(sql`UPDATE ${tables.runs} SET data = '{}' WHERE scan_id = ${scanId}`);
    const all = async () => [
      await setup.rows(sql`SELECT *, xmin::text, xmax::text FROM ${tables.feeds}`),
      await setup.rows(sql`SELECT *, xmin::text, xmax::text FROM ${tables.runs}`),
      await setup.rows(sql`SELECT *, xmin::text, xmax::text FROM ${tables.quarantine}`),
    ];
    const before = await all();
    expect(await run('--since 24h')).toMatchObject({ exitCode: 1 });
    expect(await all()).toEqual(before);
  });

  it('shows no document content', async () => {
    const scanId = deliver({ data: { geheim: 'canary-4711' }, fileName: 'canary-4711.pdf' });
    await sync();
    await setup.rows(sql`UPDATE ${tables.runs} SET data = '{"geheim": "canary-4712"}' WHERE scan_id = ${scanId}`);
    const runs = [await run('--since 24h'), await run('--since 24h --json')];
    for (const { out, err } of runs) expect(out + err).not.toContain('canary');
  });
});

describe('failures of verify', () => {
  it('retries temporary failures, then reports that the service is unavailable', async () => {
    deliver();
    await sync();
    emulator.addFault({ kind: 'status', status: 503, operation: 'feed', next: 2 });
    expect(await run('--since 24h')).toMatchObject({ exitCode: 0 });
    emulator.addFault({ kind: 'status', status: 503, operation: 'feed' });
    const before = emulator.requests.count('feed');
    expect(await run('--since 24h')).toMatchObject({ exitCode: 75, err: expect.stringContaining('returned 503') });
    expect(emulator.requests.count('feed') - before).toBe(5);
  });

  it('ends its JSON without a summary when it fails after a difference', async () => {
    const [first] = [deliver(), deliver()];
    await sync();
    await setup.rows(sql`DELETE FROM ${tables.runs}`);
    const reader = () => {
      emulator.addFault({ kind: 'status', status: 503, operation: 'feed' });
      return true;
    };
    const { exitCode, out } = await run('--since 24h --json', { env: { SCANFEED_PAGE_LIMIT: '1' }, reader });
    expect(exitCode).toBe(75);
    expect(JSON.parse(out)).toMatchObject({ differences: [{ scanId: first, what: 'missing' }], summary: null });
  });

  it('ends when the program that reads the differences has ended', async () => {
    deliver();
    deliver();
    await sync();
    await setup.rows(sql`DELETE FROM ${tables.runs}`);
    const { exitCode, out } = await run('--since 24h', { env: { SCANFEED_PAGE_LIMIT: '1' }, reader: () => false });
    expect([exitCode, out.match(/missing/g)?.length]).toEqual([1, 1]);
  });

  it('does not retry when a failure needs action', async () => {
    deliver();
    await sync();
    const before = emulator.requests.count('feed');
    const { exitCode, err } = await run('--since 24h', { env: { SCANFEED_API_KEY: 'wrong-key' } });
    expect([exitCode, emulator.requests.count('feed') - before]).toEqual([1, 1]);
    expect(err).toContain('returned 401');
  });

  it('reports when no runs are stored yet', async () => {
    await setup.takeFeed({ baseUrl: emulator.url });
    expect(await run('--since 24h')).toMatchObject({ exitCode: 1, err: expect.stringContaining('not known yet') });
  });

  it('reports when the filters differ from those of the daemon', async () => {
    deliver({ status: 'failed', data: undefined, failureReason: 'unreadable', error: 'Nicht lesbar.' });
    await sync();
    const { err } = await run('--since 24h', { env: { SCANFEED_STATUS: 'failed' } });
    expect(err).toBe('The filters in these settings differ from those of the daemon, which may cause differences.\n');
  });

  it.each(['--until 1h', '--since gestern', '--since 1h --until 2h'])('refuses %s as wrong usage', async (args) => {
    deliver();
    await sync();
    expect(await run(args)).toMatchObject({ exitCode: 64 });
  });
});
