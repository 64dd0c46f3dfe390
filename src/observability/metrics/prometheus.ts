import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { HELP } from './metric-definitions.js';

/** Of a metric that is defined. */
export type Name = keyof typeof HELP;

export type Instruments = ReturnType<typeof createInstruments>;

/**
 * Makes the metrics of one registry: the only place that knows the Prometheus library.
 * @param labels of every metric
 * @param nodeMetrics also those of Node and the process, which they watch for as long as it lives
 */
export function createInstruments(
  labels: Readonly<Record<string, string>>,
  { nodeMetrics }: { readonly nodeMetrics: boolean },
) {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  const definition = (name: Name) => ({ name, help: HELP[name], registers: [registry] });
  if (nodeMetrics) collectNodeMetrics(registry);
  return {
    /** @param collect asked for the value at each scrape */
    gauge(name: Name, collect: () => number): void {
      new Gauge({
        ...definition(name),
        collect() {
          this.set(collect());
        },
      });
    },
    /** A value for each of the label's. @param collect asked for it at each scrape */
    gauges<V extends string>(name: Name, label: string, values: readonly V[], collect: (value: V) => number): void {
      new Gauge({
        ...definition(name),
        labelNames: [label],
        collect() {
          for (const value of values) this.set({ [label]: value }, collect(value));
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

/** Sums of other metrics, named as if they were counters: Prometheus' own check refuses them. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
] as const;

/** Statistics of a timer that wakes the process a hundred times a second: at rest that costs more than all of its work. */
const SAMPLED = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'].map(
  (name) => `nodejs_eventloop_lag_${name}_seconds`,
);
/** As good as never, milliseconds; the library has no way to leave that timer out. */
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
