import { type RawBuilder, sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { pageOf } from '../../support/concurrent-commits.js';
import { entryJson, raw } from '../../support/entries.js';
import { feedAtEnd, nextPass, passCommit } from '../../support/passes.js';
import { commitPending } from '../../support/pending.js';
import { useDatabase } from '../../support/postgres/index.js';
import { claimNothing, emptyTables, MIGRATED, type TestFeed, tables, testFeed, useStore } from '../../support/store.js';

const setup = useStore(useDatabase(MIGRATED));
const FAILED = { status: 'failed', data: undefined, failureReason: 'unreadable', error: 'Nicht lesbar.' };
let feed: TestFeed;

beforeEach(async () => {
  await emptyTables(setup, tables.feeds, tables.runs, tables.runHistory, tables.quarantine);
  feed = await setup.takeFeed();
});

const scans = async (view: string, where: RawBuilder<unknown> = sql`true`) => {
  const rows = await setup.rows(
    sql<{ scan_id: string }>`SELECT scan_id FROM ${sql.id('scanfeed_reporting', view)} WHERE ${where} ORDER BY scan_id`,
  );
  return rows.map(({ scan_id }) => scan_id);
};

describe('runs', () => {
  it('contains the highest revision when runs have any environment and status', async () => {
    await feed.commit([
      entryJson({ scanId: 'a' }),
      entryJson({ scanId: 'a', revision: 2 }),
      entryJson({ scanId: 'b', environment: 'test' }),
      entryJson({ scanId: 'c', ...FAILED }),
    ]);
    const rows = await setup.rows(
      sql`SELECT scan_id, revision, status, environment FROM scanfeed_reporting.runs ORDER BY scan_id`,
    );
    expect(rows).toEqual([
      { scan_id: 'a', revision: 2, status: 'completed', environment: 'prod' },
      { scan_id: 'b', revision: 1, status: 'completed', environment: 'test' },
      { scan_id: 'c', revision: 1, status: 'failed', environment: 'prod' },
    ]);
    expect(await scans('failed_runs')).toEqual(['c']);
  });
});

describe('the origin of a run', () => {
  const origin = async (scanId: string) => {
    const [row] = await setup.rows(sql<{ by: string; waited: boolean | null }>`
      SELECT stored_by AS by, pending_for > interval '1 hour' AS waited FROM scanfeed_reporting.runs
      WHERE scan_id = ${scanId}`);
    return row;
  };
  /** Stores the run as a loaded result. */
  const load = (scanId: string, revision: number) =>
    setup.store.commitResults(feed.lease, pageOf([entryJson({ scanId, revision })]).batch);

  it('says how long the result was pending, until a later revision is stored', async () => {
    await commitPending(feed, { scanId: 'a' });
    expect(await origin('a')).toEqual({ by: 'feed', waited: null });
    await setup.rows(sql`UPDATE ${tables.runs} SET pending_since = pending_since - interval '2 hours'`);
    await load('a', 1);
    expect(await origin('a')).toEqual({ by: 'feed', waited: true });
    await feed.commit([
      entryJson({ scanId: 'a', ocrConfidence: 1 }),
      entryJson({ scanId: 'a', partnerTestMode: true }),
    ]);
    expect(await origin('a')).toEqual({ by: 'feed', waited: true });
    await load('a', 2);
    expect(await origin('a')).toEqual({ by: 'result', waited: null });
  });

  it.each(['recent', 'full', 'history', 'backfill'] as const)('says that a %s pass stored it', async (kind) => {
    const { lease } = await feedAtEnd(setup, { name: 'own', start: kind === 'history' ? 'live' : 'beginning' });
    const range = { since: new Date(0), until: new Date() };
    if (kind === 'recent' || kind === 'full')
      await setup.store.beginPass(lease, { kind, ...range, completeAsOf: range.until });
    if (kind === 'backfill') await setup.operatorStore.passes.requestBackfill('own', range);
    const pass = await nextPass(setup, 'own', kind);
    await setup.store.commitPass(passCommit(lease, pass, {}, [entryJson({ scanId: 'found' })]));
    expect(await origin('found')).toEqual({ by: kind, waited: null });
  });
});

describe('productive_runs', () => {
  it('excludes runs when they must not be processed', async () => {
    await feed.commit([
      entryJson({ scanId: 'good' }),
      entryJson({ scanId: 'test', environment: 'test' }),
      entryJson({ scanId: 'partner', partnerTestMode: true }),
      entryJson({ scanId: 'unreadable-mode', partnerTestMode: 'perhaps' }),
      entryJson({ scanId: 'failed', ...FAILED }),
      entryJson({ scanId: 'pending', data: undefined, resultTruncated: true }),
    ]);
    await setup.rows(sql`UPDATE ${tables.runs} SET result_state = 'pending', pending_reason = 'not_loaded',
      pending_since = now(), next_try_at = now() WHERE scan_id = 'pending'`);
    expect(await scans('productive_runs')).toEqual(['good']);
  });

  it('excludes and counts runs when they have no usable data', async () => {
    const unusable = [undefined, null, ['x'], 'text', 7];
    await feed.commit([
      entryJson({ scanId: 'good' }),
      entryJson({ scanId: 'empty', data: {} }),
      entryJson({ scanId: 'failed', ...FAILED }),
      ...unusable.map((data, index) => entryJson({ scanId: `unusable-${index}`, data })),
    ]);
    expect(await scans('productive_runs')).toEqual(['empty', 'good']);
    expect(await scans('runs')).toHaveLength(3 + unusable.length);
    const counted = await setup.rows(sql`SELECT runs_without_data::int FROM scanfeed_reporting.sync_status`);
    expect(counted).toEqual([{ runs_without_data: unusable.length }]);
  });

  it('excludes a run when a higher revision is in open quarantine', async () => {
    await feed.commit([
      entryJson({ scanId: 'a' }),
      entryJson({ scanId: 'b', revision: 2 }),
      entryJson({ scanId: 'a', revision: 2, status: 'odd' }),
      entryJson({ scanId: 'b', revision: 1, status: 'odd' }),
    ]);
    expect(await scans('productive_runs')).toEqual(['b']);
    await feed.commit([entryJson({ scanId: 'a', revision: 2 })]);
    expect(await scans('productive_runs')).toEqual(['a', 'b']);
  });

  it('excludes a run when an entry with an unreadable revision is in quarantine', async () => {
    await feed.commit([entryJson({ scanId: 'a' }), entryJson({ scanId: 'b' })]);
    await feed.commit([entryJson({ scanId: 'a', revision: raw('"2"') })]);
    expect(await scans('productive_runs')).toEqual(['b']);
    await setup.rows(sql`UPDATE ${tables.quarantine} SET state = 'discarded'`);
    expect(await scans('productive_runs')).toEqual(['a', 'b']);
  });
});

describe('run_history', () => {
  it('contains the previous revision when a run was corrected', async () => {
    await feed.commit([entryJson({ scanId: 'a', data: { betrag: raw('1.10') } })]);
    await feed.commit([entryJson({ scanId: 'a', revision: 2, data: { betrag: raw('2.20') } })]);
    const rows = await setup.rows(sql`
      SELECT old.data->>'betrag' AS before, new.data->>'betrag' AS after
      FROM scanfeed_reporting.run_history AS old JOIN scanfeed_reporting.runs AS new USING (scan_id)`);
    expect(rows).toEqual([{ before: '1.10', after: '2.20' }]);
  });
});

describe('quarantined', () => {
  it('lists entries without their content when they could not be stored', async () => {
    await feed.commit([entryJson({ scanId: 'a', status: 'odd', data: { iban: 'canary' } })]);
    const rows = await setup.rows(sql`SELECT * FROM scanfeed_reporting.quarantined`);
    expect(rows).toMatchObject([{ scan_id: 'a', revision: 1, state: 'open', reason: 'status', times_seen: 1 }]);
    expect(JSON.stringify(rows)).not.toContain('canary');
  });
});

describe('daily_statistics', () => {
  const day = (over: Record<string, unknown>, seconds: number, at = '2026-01-02T23:59:00Z') =>
    entryJson({
      completedAt: at,
      submittedAt: new Date(Date.parse(at) - seconds * 1000).toISOString(),
      ...over,
    });

  it('counts runs by UTC day when the reader has another time zone, without partners in test mode', async () => {
    await feed.commit([
      day({ scanId: 'a', ocrConfidence: 0.9 }, 10),
      day({ scanId: 'b', ocrConfidence: 0.8 }, 20),
      day({ scanId: 'c', ...FAILED, ocrConfidence: null }, 30),
      day({ scanId: 'd', partnerTestMode: true }, 40),
      day({ scanId: 'e', environment: 'test' }, 50),
      day({ scanId: 'f' }, 60, '2026-01-03T00:00:00Z'),
      day({ scanId: 'g', partnerName: null, documentType: { slug: null, name: null } }, 60, '2026-01-03T00:00:00Z'),
    ]);
    const rows = await setup.rows(sql`
      SELECT day::text, environment, document_type_slug, partner_name, completed::int, failed::int, ocr_confidence_mean,
        ocr_confidence_p05, turnaround_p50_seconds, turnaround_p95_seconds
      FROM scanfeed_reporting.daily_statistics ORDER BY day, environment, partner_name`);
    const figures = { completed: 1, failed: 0, ocr_confidence_mean: 0.97, ocr_confidence_p05: 0.97 };
    const usual = { document_type_slug: 'rechnung', partner_name: 'Muster GmbH' };
    expect(rows).toEqual([
      {
        ...usual,
        day: '2026-01-02',
        environment: 'prod',
        completed: 2,
        failed: 1,
        ocr_confidence_mean: expect.closeTo(0.85),
        ocr_confidence_p05: expect.closeTo(0.805),
        turnaround_p50_seconds: 20,
        turnaround_p95_seconds: 29,
      },
      {
        ...usual,
        ...figures,
        day: '2026-01-02',
        environment: 'test',
        turnaround_p50_seconds: 50,
        turnaround_p95_seconds: 50,
      },
      {
        ...usual,
        ...figures,
        day: '2026-01-03',
        environment: 'prod',
        turnaround_p50_seconds: 60,
        turnaround_p95_seconds: 60,
      },
      {
        ...figures,
        day: '2026-01-03',
        environment: 'prod',
        document_type_slug: null,
        partner_name: null,
        turnaround_p50_seconds: 60,
        turnaround_p95_seconds: 60,
      },
    ]);
  });
});

describe('sync_status', () => {
  const status = async () =>
    (await setup.rows(sql<Record<string, unknown>>`SELECT * FROM scanfeed_reporting.sync_status`))[0];

  it('shows unknown freshness when no page was read, and missing data afterwards', async () => {
    expect(await status()).toMatchObject({
      feed: 'default',
      data_complete_as_of: null,
      lag_seconds: Number.POSITIVE_INFINITY,
      complete_from: null,
      pending_results: '0',
      quarantined: '0',
      initial_sync_complete: false,
    });
    const polledAt = performance.now() - 60_000;
    const atEnd = { polledAt, completeUpTo: null, lastDeliveredAt: null, end: 'yes' as const };
    await feed.commit([entryJson({ scanId: 'a', status: 'odd' }), entryJson({ scanId: 'b' })], { freshness: atEnd });
    await setup.rows(sql`UPDATE ${tables.runs} SET result_state = 'pending', pending_reason = 'not_loaded',
      pending_since = now(), next_try_at = now()`);
    const { lag_seconds: lag, ...rest } = (await status()) ?? {};
    expect(rest).toMatchObject({ pending_results: '1', quarantined: '1', initial_sync_complete: true });
    expect(lag).toBeGreaterThanOrEqual(60);
  });

  it('agrees with the metrics when runs are pending and quarantined', async () => {
    const delivery = { ...claimNothing(), lastDeliveredAt: new Date('2026-01-02T08:00:31Z') };
    await feed.commit([entryJson({ scanId: 'a', status: 'odd' }), entryJson({ scanId: 'b', data: null })], {
      freshness: delivery,
    });
    const feedStatus = await setup.store.readStatus('default');
    expect(await status()).toMatchObject({
      data_complete_as_of: feedStatus.dataCompleteAsOf,
      pending_results: String(feedStatus.pendingResults),
      quarantined: String(feedStatus.quarantinedEntries),
      initial_sync_complete: feedStatus.initialSyncComplete,
      last_poll_at: feedStatus.lastPollAt,
      last_commit_at: feedStatus.lastCommitAt,
      runs_without_data: String(feedStatus.runsWithoutData),
    });
    expect(feedStatus).toMatchObject({ runsWithoutData: 1, lastDeliveredAt: delivery.lastDeliveredAt });
  });

  it('shows the start when the feed did not start at the beginning', async () => {
    await setup.takeFeed(testFeed({ name: 'later', start: new Date('2026-01-01T00:00:00Z') }));
    const rows = await setup.rows(sql`SELECT feed, complete_from FROM scanfeed_reporting.sync_status ORDER BY feed`);
    expect(rows).toEqual([
      { feed: 'default', complete_from: null },
      { feed: 'later', complete_from: new Date('2026-01-01T00:00:00Z') },
    ]);
  });
});
