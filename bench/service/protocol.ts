/** What the service's process is started with. */
export interface ServiceConfig {
  /** Runs that are there from the start, 1.7 KB each. */
  readonly history: number;
  /** Another seed, other scan ids. */
  readonly seed: number;
  /** Before every response. */
  readonly latencyMs: number;
  /** Number of organizations that respond more slowly, the first ones. */
  readonly slowOrganizations: number;
  /** Before every response of these organizations. */
  readonly slowLatencyMs: number;
  /** Share of runs whose result is left out of the feed. */
  readonly truncatedShare: number;
  readonly newRunsPerSecond: number;
  /** Each has a key and a feed of its own. Pages are recorded only for a single one. */
  readonly organizations: number;
}

export interface ServiceAddress {
  /** With `/v1`. */
  readonly url: string;
  readonly apiKey: string;
  /** One for each organization. */
  readonly apiKeys: readonly string[];
}

/** What was asked since the last time this was asked for. Milliseconds since 1970. */
export interface ServiceLog {
  readonly requests: number;
  readonly firstAt: number;
  readonly lastAt: number;
}

/** `log`: asks for the log; a number: from now on, new runs a second of each organization. */
export type ToService = 'log' | number;
export type FromService = { readonly address: ServiceAddress } | { readonly log: ServiceLog };
