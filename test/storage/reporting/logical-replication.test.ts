import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type RawBuilder, sql } from 'kysely';
import { beforeAll, describe, expect, it } from 'vitest';
import { entryJson, type Fields } from '../../support/entries.js';
import { refresh } from '../../support/reports.js';
import { type StoreSetup, type TestFeed, tables, useServerOfItsOwn, useStore } from '../../support/store.js';

const GUIDE = readFileSync(new URL('../../../docs/postgresql.md', import.meta.url), 'utf8');
// Only what is flushed is sent and confirmed: the publisher flushes each commit, as by default, and the subscriber soon.
const publisherServer = useServerOfItsOwn({ wal_level: 'logical', synchronous_commit: 'on' });
const publisher = useStore(publisherServer);
const subscriber = useStore(useServerOfItsOwn({ wal_writer_delay: '10ms' }));
let feed: TestFeed;

/** Statements of the guide that are marked with a word. */
function statements(mark: string): readonly string[] {
  const [, text = ''] = new RegExp(`^\`\`\`sql ${mark}\\n([^\`]*)\`\`\``, 'm').exec(GUIDE) ?? [];
  return text.split(/;\n/).filter((statement) => statement.trim() !== '');
}

async function runAll({ rows }: StoreSetup, list: readonly string[]): Promise<void> {
  for (const statement of list) await rows(sql.raw(statement));
}

/** Resolves once the initial copy is complete and the subscriber has flushed everything that is committed now. */
async function untilReplicated(): Promise<void> {
  const [end] = await publisher.rows(sql<{ lsn: string }>`SELECT pg_current_wal_lsn()::text AS lsn`);
  const copying = sql`SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r'`;
  const behind = sql`SELECT FROM pg_replication_slots WHERE confirmed_flush_lsn < ${end?.lsn}::pg_lsn`;
  await until(async () => (await subscriber.rows(copying)).length === 0);
  await until(async () => (await publisher.rows(behind)).length === 0);
}

async function until(isReached: () => Promise<boolean>): Promise<void> {
  while (!(await isReached())) await new Promise(setImmediate);
}

/** What both servers should say, by name. */
const COMPARED: Readonly<Record<string, RawBuilder<unknown>>> = {
  runs: sql`SELECT to_jsonb(r) FROM ${tables.runs} AS r`,
  run_history: sql`SELECT to_jsonb(r) FROM ${tables.runHistory} AS r`,
  deleted_runs: sql`SELECT to_jsonb(r) FROM ${tables.deletedRuns} AS r`,
  quarantine: sql`SELECT to_jsonb(r) - 'payload' FROM ${tables.quarantine} AS r`,
  productive_runs: sql`SELECT to_jsonb(r) FROM scanfeed_reporting.productive_runs AS r`,
  changes: sql`SELECT to_jsonb(r) FROM scanfeed_reporting.changes AS r`,
};

/** Returns the compared rows of a server as text: drivers would lose digits. */
async function contents({ rows }: StoreSetup): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const [name, query] of Object.entries(COMPARED)) {
    const texts = await rows(sql<{ text: string }>`SELECT row::text AS text FROM (${query}) AS q (row) ORDER BY 1`);
    found[name] = texts.map(({ text }) => text);
  }
  return found;
}

/** Returns everything that a server stores, the bytes of quarantined entries included. */
const everything = async ({ rows }: StoreSetup) =>
  JSON.stringify(
    await rows(sql`
    SELECT to_jsonb(r)::text AS row FROM ${tables.runs} AS r UNION ALL SELECT to_jsonb(h)::text FROM ${tables.runHistory} AS h
    UNION ALL SELECT to_jsonb(q)::text || convert_from(payload, 'LATIN1') FROM ${tables.quarantine} AS q
    UNION ALL SELECT to_jsonb(d)::text FROM ${tables.deletedRuns} AS d`),
  );

const productive = async ({ rows }: StoreSetup) =>
  (await rows(sql<{ scan_id: string }>`SELECT scan_id FROM scanfeed_reporting.productive_runs ORDER BY scan_id`)).map(
    (row) => row.scan_id,
  );

const entry = (scanId: string, over: Fields = {}) => entryJson({ scanId, ...over });
/** Unusable, so it goes to quarantine. */
const unusable = (scanId: string, revision: number, over: Fields = {}) =>
  entry(scanId, { revision, status: 'odd', ...over });
const AGO = { deliveredAt: '2020-01-01T00:00:00Z', completedAt: '2020-01-01T00:00:00Z' };
/** Too long for a row: PostgreSQL stores it elsewhere, and does not send it again with an update of the row. */
const LONG = { data: { text: randomBytes(20_000).toString('hex'), betrag: 1.1 } };

/** Runs the statements of the guide for the subscriber, and waits for the initial copy. */
async function subscribe(list: readonly string[]): Promise<void> {
  const { hostname, port, pathname, password, username } = new URL(publisherServer.url);
  const connection = `host=${hostname} port=${port} dbname=${pathname.slice(1)} user=${username} password=${password}`;
  await runAll(
    subscriber,
    list.map((text) => text.replace(/CONNECTION '.*?'/, `CONNECTION '${connection}'`)),
  );
  await untilReplicated();
}

beforeAll(async () => {
  feed = await publisher.takeFeed();
  await feed.commit([entry('stored-before'), unusable('refused-before', 1)]);
  await feed.commit([entry('stored-before', { revision: 2 })]);
  await runAll(publisher, statements('publisher'));
  await subscribe(statements('subscriber'));
});

describe('a subscriber to the publication of the guide', () => {
  it('has what was stored before when the initial copy is complete', async () => {
    const copied = await contents(subscriber);
    expect(copied).toEqual(await contents(publisher));
    expect(Object.entries(copied).map(([name, rows]) => [name, rows.length])).toEqual([
      ['runs', 1],
      ['run_history', 1],
      ['deleted_runs', 0],
      ['quarantine', 1],
      ['productive_runs', 1],
      ['changes', 1],
    ]);
  });

  it('equals the publisher when runs are corrected, fail, are refused and expire', async () => {
    await feed.commit([
      ...['corrected', 'failed', 'refused', 'settled'].map((scanId) => entry(scanId)),
      entry('long', LONG),
      entry('expired', AGO),
      entry('repaired', { fileName: '\u0000' }),
    ]);
    await untilReplicated();
    expect(await productive(subscriber)).toEqual([
      'corrected',
      'expired',
      'failed',
      'long',
      'refused',
      'repaired',
      'settled',
      'stored-before',
    ]);
    await feed.commit([
      entry('corrected', { revision: 2, data: { betrag: 2 } }),
      entry('failed', { revision: 2, status: 'failed', failureReason: 'timeout', data: null }),
      ...['refused', 'settled', 'long'].map((scanId) => unusable(scanId, 2)),
    ]);
    await untilReplicated();
    expect(await productive(subscriber)).toEqual(['corrected', 'expired', 'repaired', 'stored-before']);
    await feed.commit([entry('settled', { revision: 3 })]);
    await publisher.operatorStore.deletedRuns.purgeRuns(365, 100);
    await publisher.rows(
      sql`UPDATE ${tables.runHistory} SET superseded_at = now() - interval '11 days' WHERE scan_id = 'corrected'`,
    );
    await publisher.rows(
      sql`UPDATE ${tables.quarantine} SET first_seen_at = now() - interval '11 days' WHERE scan_id = 'long'`,
    );
    expect(await publisher.operatorStore.deletedRuns.purgeHistory(10, 100)).toBe(1);
    expect(await publisher.operatorStore.deletedRuns.purgeQuarantine(10, 100)).toBe(1);
    await untilReplicated();
    expect(await productive(subscriber)).toEqual(['corrected', 'long', 'repaired', 'settled', 'stored-before']);
    expect(await contents(subscriber)).toEqual(await contents(publisher));
  });

  it('keeps nothing of a run when it is erased', async () => {
    await feed.commit([
      entry('erased', { fileName: 'canary-1', ...LONG }),
      entryJson({ scanId: ['erased'], fileName: 'canary-2' }),
    ]);
    await feed.commit([
      entry('erased', { revision: 2, partnerName: 'canary-3' }),
      unusable('erased', 3, { error: 'canary-4' }),
    ]);
    await untilReplicated();
    const before = await everything(subscriber);
    expect(['canary-1', 'canary-2', 'canary-3', 'canary-4'].filter((text) => before.includes(text))).toEqual([
      'canary-1',
      'canary-3',
    ]);
    await publisher.operatorStore.deletedRuns.erase(['erased']);
    feed = await publisher.takeFeed();
    await untilReplicated();
    expect(await everything(subscriber)).not.toContain('canary');
    expect(await contents(subscriber)).toEqual(await contents(publisher));
    expect((await contents(subscriber)).deleted_runs).toContainEqual(expect.stringContaining('erased'));
  });

  it('has the typed views of the publisher when its documents are searched for fields', async () => {
    await refresh(publisher);
    await refresh(subscriber);
    const documents = sql<{ betrag: string }>`SELECT * FROM scanfeed_reporting.document_rechnung ORDER BY scan_id`;
    const rows = await subscriber.rows(documents);
    expect(rows.length).toBeGreaterThan(0);
    expect(rows).toEqual(await publisher.rows(documents));
  });

  it('is listed as active when the slots are monitored', async () => {
    await untilReplicated();
    const [query = ''] = statements('monitoring');
    expect(await publisher.rows(sql.raw(query))).toEqual([
      expect.objectContaining({ slot_name: 'copy', active: true, wal_status: 'reserved' }),
    ]);
  });

  it('equals the publisher when it was ahead of it and is copied again', async () => {
    await subscriber.rows(sql`UPDATE ${tables.runs} SET scan_id = 'of a lost commit' WHERE scan_id = 'stored-before'`);
    await runAll(subscriber, statements('again'));
    const slots = sql`SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active`;
    await until(async () => (await publisher.rows(slots)).length > 0);
    await subscribe(statements('subscriber'));
    expect(await contents(subscriber)).toEqual(await contents(publisher));
  });
});
