/**
 * scanfeed's own commit statements with everything in memory beforehand: one connection, one statement after the other,
 * nothing else. What the database alone allows.
 */
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { ServiceClient } from '../../src/service/client.js';
import { createCommits } from '../../src/storage/commit/commit-page.js';
import { createDatabaseClock } from '../../src/storage/connection/database-clock.js';
import { connectStore } from '../../src/storage/connection/store-connection.js';
import { createLeases } from '../../src/storage/feeds/lease.js';
import { batchOf, type CheckedEntries, checkEntries } from '../../src/sync/page/check-entries.js';
import type { LeaseGrant, PageCommit } from '../../src/sync/ports/index.js';
import { feedRequest } from '../service/recording.js';
import { type ContestConfig, contest } from './contest.js';

interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

const SCHEMA = 'scanfeed';
const monotonic = () => performance.now();
const SETTINGS = {
  pendingRetryMs: 30_000,
  keptDays: null,
  monotonic,
  databaseClock: createDatabaseClock(monotonic),
};

await contest(async (config) => {
  const lease = await takeFeed(config);
  const statements: Statement[] = [];
  let runs = 0;
  for await (const commit of commitsOf(config, lease)) {
    statements.push(await statementOf(commit));
    runs += commit.batch.length;
  }
  const client = new pg.Client({ connectionString: config.databaseUrl });
  await client.connect();
  return async () => {
    for (const { text, values } of statements) {
      const { rowCount } = await client.query(text, values);
      if (rowCount !== 1) throw new Error('the fence did not hold');
    }
    return runs;
  };
});

async function takeFeed({ databaseUrl, serviceUrl: baseUrl }: ContestConfig): Promise<LeaseGrant> {
  const pool = new pg.Pool({ connectionString: databaseUrl });
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  const { filters } = feedRequest(null);
  const identity = { name: 'default', baseUrl, filters, keepHistory: true, start: 'beginning' } as const;
  const leases = createLeases(connectStore({ sql: db }, SCHEMA), SETTINGS.databaseClock);
  const lease = await leases.acquireLease(identity, 'bench');
  await db.destroy();
  if (lease === null) throw new Error('the feed is taken');
  return lease;
}

async function* commitsOf(config: ContestConfig, lease: LeaseGrant): AsyncGenerator<PageCommit> {
  const client = new ServiceClient({ baseUrl: config.serviceUrl, apiKey: config.apiKey });
  for (let from: string | null = null; ; ) {
    const polledAt = performance.now();
    const pages = await readPages(client, from, config.pagesTogether);
    const last = pages.at(-1);
    if (last === undefined) return client.close();
    const lastDeliveredAt = last.checked.entries.at(-1)?.accepted.run.deliveredAt ?? null;
    yield {
      lease,
      from,
      to: last.next,
      batch: batchOf(pages.flatMap(({ checked }) => checked.entries)),
      quarantine: [],
      freshness: { end: 'no', polledAt, completeUpTo: polledAt, lastDeliveredAt },
    };
    from = last.next;
  }
}

/** So many pages in a row, or as many as there are. */
async function readPages(client: ServiceClient, from: string | null, count: number) {
  const pages: { readonly checked: CheckedEntries; readonly next: string | null }[] = [];
  for (let cursor = from; pages.length < count; ) {
    const page = await client.readPage(feedRequest(cursor));
    if (page.items.length === 0) break;
    cursor = page.nextCursor;
    pages.push({ checked: checkEntries(page), next: cursor });
  }
  return pages;
}

/** The statement that production would send, taken where it would leave for the connection. */
async function statementOf(commit: PageCommit): Promise<Statement> {
  let sent: Statement | null = null;
  const query = async (text: string, values: readonly unknown[]) => {
    sent = { text, values: [...values] };
    return { command: 'SELECT', rowCount: 0, rows: [] };
  };
  const pool = { connect: async () => ({ query, release: () => {} }), end: async () => {} };
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: pool as never }) });
  await createCommits(connectStore({ sql: db }, SCHEMA), SETTINGS).commitPage(commit);
  if (sent === null) throw new Error('no statement was sent');
  return sent;
}
