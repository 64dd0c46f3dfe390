import { expect, test } from 'vitest';
import { settingsWith } from '../support/settings.js';

const COLLECTOR = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.example:4318' };
const tracesWith = (env: NodeJS.ProcessEnv) => settingsWith(env).process.traces;

test.each<[string, NodeJS.ProcessEnv]>([
  ['there is no collector', {}],
  ['the SDK is disabled', { ...COLLECTOR, OTEL_SDK_DISABLED: 'TRUE' }],
  ['the exporter of traces is none', { ...COLLECTOR, OTEL_TRACES_EXPORTER: 'none' }],
  ['the sampler takes none', { ...COLLECTOR, OTEL_TRACES_SAMPLER: 'parentbased_always_off' }],
  ['its share is 0', { ...COLLECTOR, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }],
])('exports no traces when %s', (_, env) => {
  expect(tracesWith(env)).toBeNull();
});

test.each<[number, NodeJS.ProcessEnv]>([
  [1, {}],
  [1, { OTEL_SDK_DISABLED: 'false', OTEL_TRACES_EXPORTER: 'otlp', OTEL_TRACES_SAMPLER: 'always_on' }],
  [0.1, { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' }],
  [0.1, { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' }],
  [1, { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '10%' }],
  [1, { OTEL_TRACES_SAMPLER: 'xray' }],
])('exports the traces of a share of %d of the pages', (ratio, env) => {
  expect(tracesWith({ ...COLLECTOR, ...env })).toEqual({ ratio });
});
