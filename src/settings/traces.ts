/**
 * Reads the variables of OpenTelemetry that its exporter does not read. Returns the share of the pages whose traces are exported,
 * from 0 to 1, or null if none are. A sampler that is not known counts as the default, as OpenTelemetry says. Pages have no
 * parents, so `parentbased_` makes no difference.
 */
export function readTraces(env: NodeJS.ProcessEnv): { readonly ratio: number } | null {
  const ratio = ratioOf(env.OTEL_TRACES_SAMPLER ?? '', Number(env.OTEL_TRACES_SAMPLER_ARG || 1));
  const isOff = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none';
  return isOff || ratio === 0 ? null : { ratio };
}

function ratioOf(sampler: string, argument: number): number {
  const root = sampler.replace(/^parentbased_/, '');
  if (root === 'always_off') return 0;
  return root === 'traceidratio' && argument >= 0 && argument <= 1 ? argument : 1;
}
