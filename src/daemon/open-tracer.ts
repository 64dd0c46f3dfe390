import { systemClock } from '../core/clock.js';
import { packageVersion } from '../core/package.js';
import type { Logger } from '../observability/log/logger.js';
import type { PageTracer } from '../observability/tracing/tracer.js';
import type { Settings } from '../settings/settings.js';

/** Opens the tracer if a collector is set; null otherwise. Its packages are loaded only then. */
export async function openTracer(
  { process }: Pick<Settings, 'process'>,
  logger: Pick<Logger, 'warn'>,
): Promise<PageTracer | null> {
  if (process.traces === null) return null;
  const { createOtlpTracer } = await import('../observability/tracing/otlp-tracer.js');
  return createOtlpTracer({ ...process.traces, version: packageVersion(), logger, clock: systemClock });
}
