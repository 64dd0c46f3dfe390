import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { HELP } from './metric-definitions.js';

export type Name = keyof typeof HELP;

export interface Sample<L extends string = string> {
  readonly labels: Partial<Record<L, string>>;
  readonly value: number;
}

export type Instruments = ReturnType<typeof createInstruments>;

/**
 * Creates the metrics of one registry, with those of Node and the process. Only this file uses the Prometheus library.
 * @param labels of every metric
 */
export function createInstruments(labels: Readonly<Record<string, string>>) {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  const definition = (name: Name) => ({ name, help: HELP[name], registers: [registry] });
  collectNodeMetrics(registry);
  return {
    /** @param collect returns its series; called at each scrape */
    gauge<L extends string>(name: Name, labelNames: readonly L[], collect: () => readonly Sample<L>[]): void {
      new Gauge({
        ...definition(name),
        labelNames,
        collect() {
          this.reset();
          for (const { labels, value } of collect()) this.set(labels, value);
        },
      });
    },
    counter: <L extends string>(name: Name, ...labelNames: L[]) => new Counter({ ...definition(name), labelNames }),
    /** @param buckets upper bounds */
    histogram: <L extends string>(name: Name, buckets: readonly number[], ...labelNames: L[]) =>
      new Histogram({ ...definition(name), labelNames, buckets: [...buckets] }),
    exposition: async () => ({ contentType: registry.contentType as string, text: await registry.metrics() }),
  };
}

/** Gauges with the suffix of counters, which `promtool check metrics` rejects. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
] as const;

/** Statistics of a timer that wakes the process 100 times a second: more work than the rest of an idle process. */
const SAMPLED = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'].map(
  (name) => `nodejs_eventloop_lag_${name}_seconds`,
);
/** Interval of that timer, milliseconds: practically never. The library cannot switch it off. */
const NEVER_MS = 2 ** 31 - 1;

function collectNodeMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  for (const name of [...MISNAMED, ...SAMPLED]) registry.removeSingleMetric(name);
  new Counter({
    name: 'nodejs_eventloop_active_seconds_total',
    help: 'Seconds for which the event loop was busy.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(performance.eventLoopUtilization().active / 1000);
    },
  });
}
