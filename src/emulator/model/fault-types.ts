/** Kinds of faults with their effects on a request. */
export const faultKinds = {
  status: 'responds with `status` and a German error body, without doing anything; `retryAfter` adds the header',
  html: 'responds with `status` (200 if not given) and an HTML page',
  answer: 'responds with `status`, `headers` and `body` verbatim',
  reset: 'destroys the connection before any response',
  hang: 'never responds',
  empty: 'does the work, then responds with an empty body',
  half: 'does the work, then sends the first half of the body as if it were all',
  cut: 'does the work, then destroys the connection in the middle of the body (after `afterBytes`)',
  slow: 'does the work, then sends the body slowly: `dripBytes` every `dripMs`',
  'invalid-cursor': 'feed: rejects a request with a cursor, as set by the switch `cursorRefusal`',
  'empty-cursor': 'feed: `nextCursor` is an empty string',
  'missing-cursor': 'feed: the page has no `nextCursor`',
  'stuck-cursor': 'feed: `nextCursor` is the cursor that was sent',
} as const;

/** A kind of fault; `faultKinds` explains them. */
export type FaultKind = keyof typeof faultKinds;

/** The operations of the service (interface 1.6): GET /scans, GET /scans/{scanId}, POST /scans. */
export type Operation = 'feed' | 'run' | 'submit';

/** A fault as a script writes it. Fields that its kind does not use have no effect. */
export interface FaultInput {
  /** Its effect on a request. */
  readonly kind: FaultKind;
  /** Operation that it applies to. Default `any`. */
  readonly operation?: Operation | 'any' | undefined;
  /** Number of requests after which it is removed. Without it, the fault stays until it is removed. */
  readonly next?: number | undefined;
  /** Share of the requests that it applies to, 0 to 1. */
  readonly share?: number | undefined;
  /** HTTP status of `status`, `html` and `answer`. */
  readonly status?: number | undefined;
  /** Value of the header `Retry-After` of `status`: seconds or an HTTP date. */
  readonly retryAfter?: string | number | undefined;
  /** The German text of the error body of `status` (interface 2.5). */
  readonly error?: string | undefined;
  /** Headers of `status`, `html` and `answer`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Body of `html` and `answer`. */
  readonly body?: string | undefined;
  /** Number of bytes that `cut` sends. Default: half of them. */
  readonly afterBytes?: number | undefined;
  /** Number of bytes that `slow` sends at a time. Default 16. */
  readonly dripBytes?: number | undefined;
  /** Pause of `slow` between them, milliseconds. Default 100. */
  readonly dripMs?: number | undefined;
  /** Whether damaged bodies are sent chunked, without Content-Length. Default false. */
  readonly chunked?: boolean | undefined;
}

/** An active fault, with defaults. */
export type Fault = FaultInput & {
  readonly [Name in 'operation' | 'dripBytes' | 'dripMs' | 'chunked']: NonNullable<FaultInput[Name]>;
};
