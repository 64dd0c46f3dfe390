/** What a failed request or statement means. Errors of `service/` and `storage/` have these fields. */
export interface Failure {
  /** A stable word for metrics and logs, such as `http_500`, `timeout`, `connection`. Of low cardinality. */
  readonly kind: string;
  /**
   * `retry`: temporary; retried with growing pauses. `hold`: needs a person (credentials, settings, schema); reported and
   * retried slowly. `data`: the values themselves were refused.
   */
  readonly action: 'retry' | 'hold' | 'data';
  /** Minimum pause before the next try, milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** Returns what an error means to the engine. An error without a kind and an action is a bug in scanfeed: it is retried and counted. */
export function classifyError(error: unknown): Failure {
  if (isFailure(error)) return error;
  return { kind: 'internal', action: 'retry' };
}

function isFailure(error: unknown): error is Failure {
  const { kind, action } = (error ?? {}) as Partial<Failure>;
  return typeof kind === 'string' && (action === 'retry' || action === 'hold' || action === 'data');
}
