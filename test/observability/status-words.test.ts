import { describe, expect, test } from 'vitest';
import { renderCurrentErrors } from '../../src/observability/status-page/current-errors.js';
import { firstFacts, otherFacts } from '../../src/observability/status-page/facts.js';
import { stateOf } from '../../src/observability/status-page/state.js';
import type { StatusReport } from '../../src/observability/status-page/status-report.js';
import { caughtUp, failing, readingHistory, starting } from '../support/status-page/states.js';

const { report, now } = caughtUp();
const [error] = failing().report.currentErrors;
const leaseError = { ...error, stage: 'lease' } as NonNullable<typeof error>;
const reported = (changed: Partial<StatusReport>): StatusReport => ({ ...report, ...changed });

describe('the headline', () => {
  test.each<[string, string, Partial<StatusReport>]>([
    ['Caught up', 'good', {}],
    ['Catching up', 'busy', { caughtUp: false }],
    ['Standing by', 'calm', { role: 'standby', caughtUp: false }],
    ['Starting', 'calm', starting().report],
    ['Caught up, entries in quarantine', 'warn', { quarantinedEntries: 1 }],
    ['Stuck, retrying', 'warn', { stuckSince: '2026-01-01T14:00:00.000Z' }],
    ['Failing, retrying', 'warn', { currentErrors: [{ ...leaseError, held: false }], quarantinedEntries: 1 }],
    ['Action required', 'bad', { currentErrors: [{ ...leaseError, held: false }, leaseError], caughtUp: true }],
    ['Action required', 'bad', { ...starting().report, currentErrors: failing().report.currentErrors }],
  ])('is %s in the tone %s', (headline, tone, changed) => {
    expect(stateOf(reported(changed))).toMatchObject({ headline, tone });
  });

  test.each<[string, Partial<StatusReport>]>([
    ['The data is complete up to 1.2 s ago.', {}],
    ['The data is complete up to 1.2 s ago. The initial sync is not complete yet.', { initialSyncComplete: false }],
    ['The freshness of the data is not known yet.', { lagSeconds: null }],
  ])('is followed by the freshness: %s', (sentence, changed) => {
    expect(stateOf(reported(changed)).sentence).toBe(sentence);
  });

  test.each<[string, Partial<StatusReport>]>([
    ['Led by this process, pod-1.', { leaseHolder: 'pod-1' }],
    ['Led by this process.', { leaseHolder: null }],
    ['Led by pod-1.', { role: 'standby', leaseHolder: 'pod-1' }],
    ['Last led by pod-1.', { role: 'standby', leaseHolder: 'pod-1', currentErrors: [leaseError] }],
    ['No process leads the feed.', { role: 'standby', leaseHolder: null }],
    ['The leader is not known yet.', { role: 'starting', leaseHolder: null }],
  ])('is followed by the leader: %s', (leader, changed) => {
    expect(stateOf(reported(changed)).leader).toBe(leader);
  });
});

describe('the current errors', () => {
  const textOf = (changed: Partial<StatusReport>) =>
    renderCurrentErrors(reported(changed), now, '')
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' ')
      .trim();

  test('are omitted when there are none', () => {
    expect(renderCurrentErrors(report, now, '')).toBe('');
  });

  test('name the failure, its remedy, its duration, its count, its next attempt and its runbook', () => {
    expect(textOf({ currentErrors: failing().report.currentErrors })).toMatch(
      /^Current errors Reading the feed is held \(http_401\) the delivery feed .*; correct SCANFEED_API_KEY; .* for 24 min, since 2026-01-01 14:08:08 UTC , 63 failures in a row, next attempt in 12 s Runbook$/,
    );
  });

  test('ask for a report when the failure is a bug', () => {
    const currentErrors =
      error === undefined ? [] : [{ ...error, stage: 'elsewhere', kind: 'internal', failures: 1, held: false }];
    expect(textOf({ currentErrors })).toMatch(
      /elsewhere \(internal\).*This is a bug in scanfeed: report it.*, 1 failure in a row, next attempt in 12 s Runbook$/,
    );
  });

  test('name the cursor when it does not advance', () => {
    expect(textOf({ stuckSince: '2026-01-01T13:32:08.000Z' })).toMatch(
      /^Current errors The cursor does not advance .*Ask the operators.* for 1 h, since 2026-01-01 13:32:08 UTC Runbook$/,
    );
  });
});

describe('the facts', () => {
  const facts = (changed: Partial<StatusReport>) =>
    Object.fromEntries(firstFacts(reported(changed), now, '../').map(({ name, value, more }) => [name, [value, more]]));

  test('show the time of day in large type if it is today, otherwise the date', () => {
    expect(facts({})['Data complete as of']).toEqual([expect.stringContaining('>14:32:06<'), 'UTC, 2026-01-01']);
    expect(facts({ dataCompleteAsOf: '2025-12-31T23:59:59.999Z' })['Data complete as of']).toEqual([
      expect.stringContaining('>2025-12-31<'),
      '23:59:59 UTC',
    ]);
  });

  test('show the age of the last delivery, and no exact number beyond the counted ones', () => {
    const others = (changed: Partial<StatusReport>) =>
      Object.fromEntries(otherFacts(reported(changed), now).map(({ name, value, more }) => [name, [value, more]]));
    const lastDeliveredAt = new Date(now - 3 * 3_600_000).toISOString();
    const shown = others({ lastDeliveredAt, runsWithoutData: 10_000 });
    expect(shown['Last delivery']).toEqual([expect.stringContaining(lastDeliveredAt), '3 h ago']);
    expect(shown['Completed without data']).toEqual(['10,000 or more', undefined]);
    expect(others({ lastDeliveredAt: null })['Last delivery']).toEqual(['None yet', undefined]);
    expect(facts({ pendingResults: 10_000 })['Pending results']).toEqual(['10,000 or more', 'retried automatically']);
  });

  test('show Unknown when a number is not known', () => {
    const unknown = facts({ lagSeconds: null, dataCompleteAsOf: null, pendingResults: null, quarantinedEntries: null });
    expect(Object.values(unknown)).toEqual(Array(4).fill(['Unknown', undefined]));
  });

  test('show the progress, rate and time left of a pass when they are known', () => {
    const { passes } = readingHistory().report;
    expect(facts({ passes })['Reading the feed']).toEqual([
      '15 min 3 s left',
      expect.stringMatching(/^at .*, 977 entries\/s$/),
    ]);
    const [pass] = passes;
    const begun =
      pass === undefined
        ? []
        : [{ ...pass, pass: 'history', deliveredUpTo: null, entriesPerSecond: null, secondsLeft: null }];
    expect(facts({ passes: begun })['Reading the history']).toEqual(['In progress', 'at the beginning']);
  });

  test.each([
    ['recent', 'Recent pass'],
    ['full', 'Full pass'],
    ['history', 'Reading the history'],
    ['backfill', 'Backfill'],
  ])('name a %s pass', (pass, name) => {
    const progress = { entries: 0, deliveredUpTo: null, entriesPerSecond: null, secondsLeft: null };
    expect(facts({ passes: [{ pass, ...progress }] })).toHaveProperty([name]);
  });
});
