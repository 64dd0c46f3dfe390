/** What a commit needs besides the page. */
export interface CommitSettings {
  readonly leaseTtlMs: number;
  /** First pause before a pending result is tried again. */
  readonly pendingRetryMs: number;
  /** Monotonic milliseconds of this process. */
  readonly monotonic: () => number;
}
