import type { Failure } from '../sync/ports.js';

/** Returns what an error means to the engine. An error without a kind and an action is a bug in scanfeed: it is retried and counted. */
export function classifyError(error: unknown): Failure {
  if (isFailure(error)) return error;
  return { kind: 'internal', action: 'retry' };
}

function isFailure(error: unknown): error is Failure {
  const { kind, action } = (error ?? {}) as Partial<Failure>;
  return typeof kind === 'string' && (action === 'retry' || action === 'hold' || action === 'data');
}
