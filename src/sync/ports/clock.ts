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

/** How a failed request or statement is to be taken. Errors of `service/` and `storage/` carry these fields. */
export interface Trouble {
  /** Stable, low-cardinality word for metrics and logs, such as `http_500`, `timeout`, `connection`. */
  readonly kind: string;
  /**
   * `retry`: passing, back off and try again. `hold`: nothing will change by itself soon (credentials, settings, schema):
   * report and try again slowly. `data`: the values themselves were refused.
   */
  readonly remedy: 'retry' | 'hold' | 'data';
  /** Floor for the pause before the next try, milliseconds. */
  readonly retryAfterMs?: number | undefined;
}
