/** The meaning of a failed request or statement. Errors of `service/` and `storage/` have these fields. */
export interface Failure {
  /** A stable word of low cardinality for metrics and logs, such as `http_500`, `timeout` or `connection`. */
  readonly kind: string;
  /**
   * `retry`: temporary; retried with growing pauses. `hold`: needs an operator (credentials, settings, schema); reported and
   * retried slowly. `data`: PostgreSQL refused the values.
   */
  readonly action: 'retry' | 'hold' | 'data';
  /** The constraint of a table that refused the values. */
  readonly constraint?: string | undefined;
  /** Minimum pause before the next try, milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** Classifies an error. An error without a kind and an action is a bug in scanfeed: it is retried and counted. */
export function classifyError(error: unknown): Failure {
  if (isFailure(error)) return error;
  return { kind: 'internal', action: 'retry' };
}

function isFailure(error: unknown): error is Failure {
  const { kind, action } = (error ?? {}) as Partial<Failure>;
  return typeof kind === 'string' && (action === 'retry' || action === 'hold' || action === 'data');
}
