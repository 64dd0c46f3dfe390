import { systemClock } from '../../src/core/clock.js';
import { createFeedState } from '../../src/observability/feed-state.js';
import { createFailureLog } from '../../src/observability/log/failure-log.js';
import { createLogger, type LogFields, type ProcessLogger } from '../../src/observability/log/logger.js';
import {
  ERROR_KINDS,
  OPERATIONS,
  REQUEST_STATUSES,
  STAGES,
} from '../../src/observability/metrics/metric-definitions.js';
import { createMetrics, type MetricsOptions } from '../../src/observability/metrics/metrics.js';
import { createPassTracker } from '../../src/observability/pass-tracker.js';
import type { FeedStatus, Stage } from '../../src/sync/ports/index.js';
import { captureLeaks } from './canaries/capture-leaks.js';

/** The real log at its lowest level. */
const checkedLog = createLogger({
  level: 'trace',
  version: '0',
  destination: { write: (line) => captureLeaks('the log', line) },
});

/** A logger that keeps its lines; `next` resolves with the next line of that text. */
export function recordingLogger() {
  const lines: { level: string; message: string; fields: LogFields }[] = [];
  const waiting = new Set<() => void>();
  const linesWith = (bound: LogFields) => {
    const at =
      (level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal') =>
      (message: string, given: LogFields = {}) => {
        const fields = { ...bound, ...given };
        checkedLog[level](message, fields);
        lines.push({ level, message, fields });
        for (const check of waiting) check();
      };
    return {
      trace: at('trace'),
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      fatal: at('fatal'),
    };
  };
  const logger: ProcessLogger = { ...linesWith({}), with: linesWith, toggleDebug: () => {} };
  const until = (text: string) =>
    new Promise<void>((resolve) => {
      const check = () => {
        if (!lines.some(({ message }) => message.includes(text))) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
    });
  return { logger, lines, until };
}

/** A hand-moved monotonic clock. */
export function handClock(start = 0) {
  let time = start;
  return {
    ...systemClock,
    monotonic: () => time,
    now: () => Date.UTC(2026, 0, 1) + time,
    advance: (ms: number) => {
      time += ms;
    },
  };
}

/** The metrics of a process with one feed, and its log of failures; `metrics` are those of both. */
export function testMetrics(options: Partial<MetricsOptions> = {}) {
  const clock = handClock();
  const { monotonic } = clock;
  const state = createFeedState({ monotonic, pollIntervalMs: 5_000, requestTimeoutMs: 30_000 });
  const log = recordingLogger();
  const failures = createFailureLog<Stage>({ logger: log.logger, clock });
  const passes = createPassTracker(log.logger, clock);
  const given = { labels: { feed: 'invoices' }, version: '1.2.3', monotonic, ...options };
  const ofProcess = createMetrics(given);
  const metrics = { ...ofProcess, ...ofProcess.addFeed(given.labels.feed ?? 'first', { state, failures, passes }) };
  const sample = async (series: string) => {
    const { text } = await metrics.exposition();
    captureLeaks('the metrics', text);
    return samplesOf(text).get(series);
  };
  return { clock, state, metrics, failures, passes, log, sample };
}

const PASSES = ['feed', 'recent', 'full', 'history', 'backfill'] as const;

/** The exposition after every error and every response has occurred. */
export async function everythingOccurred(options: Partial<MetricsOptions> = {}): Promise<string> {
  const { metrics, state, failures, passes } = testMetrics(options);
  for (const pass of PASSES) passes.update(pass, { entries: 1, deliveredUpTo: null, pace: null });
  for (const stage of STAGES)
    failures.failed(stage, Object.assign(new Error('away'), { kind: 'connection', action: 'retry' }), 1);
  state.setStatus(feedStatus({ acceptsBadUntil: new Date('2026-01-01T08:00:00Z') }));
  for (const stage of STAGES) for (const kind of ERROR_KINDS) metrics.failed(stage, kind);
  for (const operation of OPERATIONS) for (const status of REQUEST_STATUSES) metrics.requested(operation, status, 1);
  return (await metrics.exposition()).text;
}

/** Values of the text exposition by series, as written: `name{label="value"}`; the label `feed` is left out. */
export function samplesOf(exposition: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of exposition.split('\n')) {
    const [, name, labels = '', value = ''] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const others = labels.replace(/,?feed="[^"]*"/, '').replace(/^,/, '');
    samples.set(
      others === '' ? name : `${name}{${others}}`,
      Number(value.replace('Inf', 'Infinity').replace('Nan', 'NaN')),
    );
  }
  return samples;
}

export function feedStatus(status: Partial<FeedStatus> = {}): FeedStatus {
  return {
    readAt: 0,
    dataCompleteAsOf: new Date('2026-01-01T00:00:00Z'),
    lagMs: 0,
    lastPollAt: new Date('2026-01-01T00:00:01Z'),
    lastCommitAt: new Date('2026-01-01T00:00:02Z'),
    lastDeliveredAt: new Date('2026-01-01T00:00:03Z'),
    endReached: true,
    stuckSince: null,
    acceptsBadUntil: null,
    initialSyncComplete: true,
    pendingResults: 0,
    quarantinedEntries: 0,
    runsWithoutData: 0,
    leaseHolder: 'pod-1',
    baseUrl: null,
    ...status,
  };
}

/** A promise and the function that resolves it. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
