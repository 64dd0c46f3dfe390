import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { createOtlpTracer } from '../../../src/observability/tracing/otlp-tracer.js';
import type { StoredPage } from '../../../src/sync/ports/index.js';
import { NO_COUNTS } from '../../support/counts.js';
import { knowHost } from '../../support/known-host.js';
import { handClock, recordingLogger } from '../../support/observed.js';
import { attributesOf, startCollector } from '../../support/tracing/collector.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** Two pages that were committed together. Times in milliseconds since the start of the clock. */
const JOINED: StoredPage = {
  reading: 'feed',
  polls: [
    { next: null, items: 200, polledAt: 1_000, receivedAt: 1_040, loadedAt: 1_300 },
    { next: null, items: 7, polledAt: 1_050, receivedAt: 1_060, loadedAt: 1_061 },
  ],
  commitBegunAt: 1_310,
  committedAt: 1_335,
  counts: { ...NO_COUNTS, inserted: 205, quarantined: 2, stored: ['scan-of-the-test'] },
};

interface Setup {
  readonly status?: number;
  readonly ratio?: number;
}

async function setUp({ ratio = 1, ...options }: Setup = {}) {
  const collector = await startCollector(options);
  onTestFinished(collector.close);
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url);
  const clock = { ...handClock(), sleep: () => new Promise<void>(() => {}) };
  const { logger, lines } = recordingLogger();
  const open = () => createOtlpTracer({ version: '1.2.3', ratio, logger, clock });
  return { collector, clock, lines, open };
}

test('sends the life of a page as spans, with numbers and times and nothing else', async () => {
  const { collector, clock, lines, open } = await setUp();
  const tracer = open();
  clock.advance(1_335);
  tracer.pageStored(JOINED, 'invoices');
  await tracer.close();

  const spans = collector.spans();
  const root = spans.find(({ name }) => name === 'page');
  expect(spans.map(({ name }) => name).sort()).toEqual(['commit', 'load', 'load', 'page', 'poll', 'poll']);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  expect(root?.parentSpanId).toBeUndefined();
  for (const span of spans) if (span !== root) expect(span.parentSpanId).toBe(root?.spanId);
  const start = BigInt(Date.UTC(2026, 0, 1)) * 1_000_000n;
  const times = spans.map((span) => [
    span.name,
    ...[span.startTimeUnixNano, span.endTimeUnixNano].map((time) => Number(BigInt(time) - start) / 1e6),
  ]);
  expect(times.sort((a, b) => Number(a[1]) - Number(b[1]) || Number(a[2]) - Number(b[2]))).toEqual([
    ['poll', 1_000, 1_040],
    ['page', 1_000, 1_335],
    ['load', 1_040, 1_300],
    ['poll', 1_050, 1_060],
    ['load', 1_060, 1_061],
    ['commit', 1_310, 1_335],
  ]);
  expect(root && attributesOf(root)).toEqual({
    'scanfeed.feed': 'invoices',
    'scanfeed.reading': 'feed',
    'scanfeed.pages': 2,
    'scanfeed.entries': 207,
  });
  expect(attributesOf(spans.find(({ name }) => name === 'commit') ?? { attributes: [] })).toEqual({
    'scanfeed.inserted': 205,
    'scanfeed.updated': 0,
    'scanfeed.unchanged': 0,
    'scanfeed.stale': 0,
    'scanfeed.quarantined': 2,
    'scanfeed.conflicts': 0,
  });
  expect(collector.text()).not.toContain('scan-of-the-test');
  expect(collector.resources()[0]).toMatchObject({ 'service.name': 'scanfeed', 'service.version': '1.2.3' });
  expect(lines).toEqual([]);
});

test('takes headers, name and attributes from the standard variables', async () => {
  const { collector, open } = await setUp();
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'x-tenant=documents');
  vi.stubEnv('OTEL_SERVICE_NAME', 'invoices-feed');
  vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=staging');
  const tracer = open();
  tracer.pageStored(JOINED, 'invoices');
  await tracer.close();
  expect(collector.headers[0]).toMatchObject({ 'x-tenant': 'documents' });
  expect(collector.resources()[0]).toMatchObject({
    'service.name': 'invoices-feed',
    'deployment.environment.name': 'staging',
  });
});

test('logs how many spans a collector refused, without what it answered', async () => {
  const { lines, open } = await setUp({ status: 400 });
  const tracer = open();
  tracer.pageStored(JOINED, 'invoices');
  await tracer.close();
  expect(lines).toEqual([
    { level: 'warn', message: 'dropped spans: collector unavailable', fields: { spans: 6, reason: '400' } },
  ]);
});

test('does not wait longer than its time for a collector that does not answer', async () => {
  const { clock } = await setUp();
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:1');
  const { logger } = recordingLogger();
  const waits: number[] = [];
  const sleep = async (ms: number) => void waits.push(ms);
  const tracer = createOtlpTracer({ version: '1', ratio: 1, logger, clock: { ...clock, sleep } });
  tracer.pageStored(JOINED, 'invoices');
  await tracer.close();
  expect(waits).toEqual([2_000]);
});

test('looks up the collector as the process looks up other hosts, so that a silent DNS server delays only it', async () => {
  await knowHost('known.test');
  const { collector, open } = await setUp();
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url.replace('127.0.0.1', 'known.test'));
  const tracer = open();
  tracer.pageStored(JOINED, 'invoices');
  await tracer.close();
  expect(collector.spans()).toHaveLength(6);
});

test('sends all spans of a share of the pages', async () => {
  const { collector, open } = await setUp({ ratio: 0.25 });
  const tracer = open();
  for (let page = 0; page < 200; page += 1) tracer.pageStored(JOINED, 'invoices');
  await tracer.close();
  const spans = collector.spans();
  const pages = spans.filter(({ name }) => name === 'page').length;
  expect(pages).toBeGreaterThan(10);
  expect(pages).toBeLessThan(90);
  expect(spans).toHaveLength(6 * pages);
});
