/** Time, waiting and chance. All durations in the engine are milliseconds. */
export interface Clock {
  /** Wall-clock time, milliseconds since 1970. Only for ages against the service's clock. */
  now(): number;
  /** Monotonic time in milliseconds. For durations; never goes back. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Uniform in [0, 1), for jitter. */
  random(): number;
}

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
