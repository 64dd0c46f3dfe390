// Loaded only if traces are exported: its packages take time and memory.
import { ROOT_CONTEXT, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { convertLegacyHttpOptions } from '@opentelemetry/otlp-exporter-base/node-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Clock } from '../../core/clock.js';
import { ATTEMPT_TIMEOUT_MS, lookupHost } from '../../core/host-lookup.js';
import type { StoredPage } from '../../sync/ports/index.js';
import type { Logger } from '../log/logger.js';
import { createThrottledLines } from '../log/throttled-lines.js';
import type { PageTracer } from './tracer.js';

/** Maximum time to export the remaining spans at the end, milliseconds. */
const CLOSE_MS = 2_000;

export interface TracerOptions {
  readonly version: string;
  /** Share of the pages whose spans are exported, from 0 to 1. */
  readonly ratio: number;
  readonly logger: Logger;
  readonly clock: Clock;
}

/**
 * Starts a tracer that sends spans over OTLP/HTTP as JSON. The exporter reads the address, headers, certificates and timeout from
 * the standard `OTEL_EXPORTER_OTLP_*` variables, the resource from `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`. Spans that
 * the collector does not take are dropped.
 */
export function createOtlpTracer(options: TracerOptions): PageTracer {
  const { version, ratio, logger, clock } = options;
  const lines = createThrottledLines(logger, clock);
  const exporter = reportFailures(openExporter(), (spans, reason) =>
    lines.add('warn', 'dropped spans: collector unavailable', { spans }, () => ({ reason })),
  );
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'scanfeed', 'service.version': version }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: new TraceIdRatioBasedSampler(ratio), // the spans of a page have one trace id
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer('scanfeed', version);
  return {
    pageStored: (page, feed) => recordPage(page, feed, tracer, clock.now() - clock.monotonic()),
    close: async () => {
      const closed = new AbortController();
      const shutdown = provider.shutdown().catch(() => {});
      await Promise.race([shutdown, clock.sleep(CLOSE_MS, closed.signal)]);
      closed.abort();
    },
  };
}

/** Opens the exporter that the variables describe, whose connections are opened like all others of the process. */
function openExporter(): SpanExporter {
  const { agentFactory } = convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', {});
  return new OTLPTraceExporter({
    httpAgentOptions: async (protocol) => {
      const agent = await agentFactory(protocol);
      const { createConnection } = agent;
      const attempts = { lookup: lookupHost, autoSelectFamilyAttemptTimeout: ATTEMPT_TIMEOUT_MS };
      return Object.assign(agent, {
        createConnection: (...[to, onCreated]: Parameters<typeof createConnection>) =>
          createConnection.call(agent, { ...to, ...attempts }, onCreated),
      });
    },
  });
}

/**
 * Records a span for the page, with one for each poll, one for each loading and one for the commit in it. They have names, numbers
 * and times, never ids, cursors or content.
 * @param epoch what to add to a monotonic time for the time since 1970, milliseconds
 */
function recordPage(page: StoredPage, feed: string, tracer: Tracer, epoch: number): void {
  const { polls, commitBegunAt, committedAt, counts, reading } = page;
  const { inserted, updated, unchanged, stale, quarantined, conflicts } = counts;
  const begunAt = Math.min(commitBegunAt, ...polls.map(({ polledAt }) => polledAt));
  const root = tracer.startSpan(
    'page',
    {
      startTime: epoch + begunAt,
      attributes: {
        'scanfeed.feed': feed,
        'scanfeed.reading': reading,
        'scanfeed.pages': polls.length,
        'scanfeed.entries': polls.reduce((sum, { items }) => sum + items, 0),
      },
    },
    ROOT_CONTEXT,
  );
  const parent = trace.setSpan(ROOT_CONTEXT, root);
  const child = (name: string, kind: SpanKind, from: number, to: number, attributes: Record<string, number>) =>
    tracer.startSpan(name, { kind, startTime: epoch + from, attributes }, parent).end(epoch + to);
  for (const { items, polledAt, receivedAt, loadedAt } of polls) {
    child('poll', SpanKind.CLIENT, polledAt, receivedAt, { 'scanfeed.entries': items });
    child('load', SpanKind.INTERNAL, receivedAt, loadedAt, {});
  }
  const written = { inserted, updated, unchanged, stale, quarantined, conflicts };
  const attributes = Object.entries(written).map(([name, runs]) => [`scanfeed.${name}`, runs]);
  child('commit', SpanKind.CLIENT, commitBegunAt, committedAt, Object.fromEntries(attributes));
  root.end(epoch + committedAt);
}

/** Reports the number of spans of each failed export, and a status or error code. Messages may quote the collector. */
function reportFailures(exporter: SpanExporter, onFailed: (spans: number, reason: string) => void): SpanExporter {
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.error !== undefined) onFailed(spans.length, reasonOf(result.error));
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}

function reasonOf(error: Error & { readonly code?: unknown }): string {
  const { code } = error;
  return typeof code === 'string' || typeof code === 'number' ? String(code) : error.name;
}
