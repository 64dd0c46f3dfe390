/** The meaning of a failed request or statement. Errors of `service/` and `storage/` have these fields. */
export interface Failure {
  /** A stable word of low cardinality for metrics and logs, such as `http_500`, `timeout` or `connection`. */
  readonly kind: string;
  /**
   * `retry`: temporary; retried with growing pauses. `hold`: needs an operator (credentials, settings, schema); reported and
   * retried slowly. `reject`: PostgreSQL or the service refused a value of an entry or a request, and would refuse it again.
   */
  readonly action: 'retry' | 'hold' | 'reject';
  /** The constraint of a table that refused the values. */
  readonly constraint?: string | undefined;
  /** Whether the database failed, and not the service: both have the kind `connection`. */
  readonly ofDatabase?: boolean | undefined;
  /** Minimum pause before the next try, milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** Kinds of failures that only the database has. */
export const DATABASE_KINDS = [
  'deadline',
  'pool_exhausted',
  'read_only',
  'deadlock',
  'serialization',
  'lock_timeout',
  'cancelled',
  'shutdown',
  'disk_full',
  'resources',
  'system',
  'authentication',
  'database_missing',
  'permission',
  'schema',
  'data',
] as const;

/** A kind of failure of the database. */
export type DatabaseKind = (typeof DATABASE_KINDS)[number] | 'connection';

/** Kinds of failures of a statement that was not executed, perhaps only because another one runs. */
const NOT_EXECUTED: ReadonlySet<string> = new Set<DatabaseKind>([
  'serialization',
  'deadlock',
  'lock_timeout',
  'cancelled',
  'resources',
  'pool_exhausted',
]);

/** A failure that is retried, as operators see it. Times are ISO 8601. */
export interface CurrentError {
  /** Stage that fails. */
  readonly stage: string;
  readonly kind: string;
  /** One line, with the remedy. */
  readonly message: string;
  /** Whether it requires an operator. */
  readonly held: boolean;
  /** Name of its runbook. */
  readonly runbook: string;
  readonly since: string;
  /** Consecutive failures. */
  readonly failures: number;
  readonly nextTryAt: string;
}

/** Kinds of a wrong key or organization. */
const KEY_KINDS = ['http_401', 'http_403', 'another_organization'];

/** Returns the name of the runbook for an error. */
export function runbookOf(error: unknown): string {
  const { kind, ofDatabase } = classifyError(error);
  if (KEY_KINDS.includes(kind)) return 'ScanfeedAuthenticationFailing';
  return ofDatabase ? 'ScanfeedDatabaseUnavailable' : 'ScanfeedErrorRatioHigh';
}

/** Classifies an error. An error without a kind and an action is a bug in scanfeed: it is retried and counted. */
export function classifyError(error: unknown): Failure {
  if (isFailure(error)) return error;
  return { kind: 'internal', action: 'retry' };
}

/** Returns whether PostgreSQL refused a value. Any other error, such as a lost connection or a full disk, is not the fault of an entry. */
export function isValueRefused(error: unknown): boolean {
  return classifyError(error).action === 'reject';
}

/** Returns whether a statement was not executed, but may succeed while no other one runs. */
export function isNotExecuted(error: unknown): boolean {
  return NOT_EXECUTED.has(classifyError(error).kind);
}

function isFailure(error: unknown): error is Failure {
  const { kind, action } = (error ?? {}) as Partial<Failure>;
  return typeof kind === 'string' && (action === 'retry' || action === 'hold' || action === 'reject');
}
