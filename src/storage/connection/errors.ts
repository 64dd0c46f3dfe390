import type { DatabaseKind, Failure } from '../../core/errors.js';

/** Raised by a function of the schema: `change_clock` has no row. */
const MISSING_CLOCK = 'SF001';
/** Raised by a function of the schema: another writer has changed a run of this commit. */
export const OVERTAKEN = 'SF002';

/** The kind and action of each SQLSTATE. The first match wins, so specific patterns precede general ones. */
const MEANINGS: readonly (readonly [sqlstate: RegExp, kind: DatabaseKind, action: Failure['action']])[] = [
  [/^25006$/, 'read_only', 'retry'], // a standby or a failover in progress
  [/^25P04$/, 'deadline', 'retry'], // transaction_timeout
  [/^40P01$/, 'deadlock', 'retry'],
  [/^(40|SF002)/, 'serialization', 'retry'],
  [/^55P03$/, 'lock_timeout', 'retry'],
  [/^57014$/, 'cancelled', 'retry'],
  [/^57/, 'shutdown', 'retry'],
  [/^53100$/, 'disk_full', 'retry'],
  [/^53/, 'resources', 'retry'],
  [/^08/, 'connection', 'retry'], // including PgBouncer's query_wait_timeout
  [/^26000$/, 'connection', 'retry'], // a prepared statement is unknown: there is an undetected pooler
  [/^0A000$/, 'schema', 'retry'], // a migration has changed the columns that a prepared statement returns
  [/^58/, 'system', 'retry'],
  [/^28/, 'authentication', 'hold'],
  [/^3D/, 'database_missing', 'hold'],
  [/^42501$/, 'permission', 'hold'],
  [/^(42|3F)/, 'schema', 'hold'], // missing or changed tables
  [/^(22|54|23)/, 'data', 'reject'],
];

const LOAD = 'find out why statements are slow or wait (pg_stat_activity: locks, disk, load)';
const TEMPORARY = 'it is temporary and retried automatically';

/** Remedies by kind, for the errors that have one. */
const ADVICE: Readonly<Record<string, string>> = {
  read_only:
    'the server is a standby, a failover is in progress, or default_transaction_read_only is on; `scanfeed doctor` says which',
  deadline: LOAD,
  deadlock: TEMPORARY,
  serialization: TEMPORARY,
  lock_timeout: LOAD,
  cancelled: `an operator or a time limit cancelled it; ${LOAD}`,
  shutdown: 'the server is stopping or starting; scanfeed retries until it is available',
  disk_full: 'free space on its disk',
  resources: 'the server has run out of memory, connections or disk space; see its log',
  connection: 'check the network and any pooler in between',
  system: "the server's operating system reported an error; see its log",
  authentication: 'check the role and its password',
  database_missing: 'create the database, or correct DATABASE_URL or PGDATABASE',
  permission: 'a privilege is missing; `scanfeed doctor` names it',
  schema:
    "a table, column or function is missing or changed; `scanfeed doctor` or the server's log says which. Restore that object from a backup",
};

/**
 * A statement that PostgreSQL refused or that failed. Its `detail` and `where` may contain document content, so only the SQLSTATE
 * and the name of the constraint are kept.
 */
export class DatabaseError extends Error implements Failure {
  override readonly name = 'DatabaseError';
  readonly ofDatabase = true;
  constructor(
    readonly sqlstate: string | null,
    readonly kind: DatabaseKind | 'internal' | 'time_zone',
    readonly action: Failure['action'],
    message: string,
    readonly constraint?: string | undefined,
  ) {
    super(message);
  }
}

/** The schema in the database is missing, or this release cannot use it. Retried slowly. */
export class SchemaMismatch extends Error implements Failure {
  override readonly name = 'SchemaMismatch';
  readonly ofDatabase = true;
  readonly kind = 'schema';
  readonly action = 'hold';
}

export function missingClock(table: string): string {
  return `the table ${table} has lost its only row, so nothing can be stored: run INSERT INTO ${table} DEFAULT VALUES`;
}

interface PgError {
  code?: unknown;
  severity?: unknown;
  constraint?: unknown;
  table?: unknown;
  column?: unknown;
}

/** Returns the SQLSTATE of an error that PostgreSQL itself reported; null for lost connections and other errors. */
export function sqlstateOf(error: unknown): string | null {
  if (error instanceof DatabaseError) return error.sqlstate;
  const { code, severity } = (error ?? {}) as PgError;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && typeof severity === 'string' ? code : null;
}

/**
 * Returns whether the connection must not be used again, by its SQLSTATE: the driver reports the severity only in the language of
 * the server (`FEHLER`). These states end a session (PostgreSQL's FATAL and PANIC). Some do so only in certain cases; then a
 * usable connection is closed needlessly.
 */
export function endsConnection(error: unknown): boolean {
  const sqlstate = sqlstateOf(error);
  return sqlstate === null || ENDING.test(sqlstate);
}

const READ_ONLY = '25006';
const ENDING = new RegExp(`^(08|28|57P|58|XX|${READ_ONLY}|25P0[34]|3D|53300|F0|26000|0A000)`);

/** Returns whether the server is read-only, such as a standby. The same address may lead to the primary now. */
export function isReadOnly(error: unknown): boolean {
  return sqlstateOf(error) === READ_ONLY;
}

/** Classifies an error of the driver by its SQLSTATE, never by its text. */
export function databaseError(error: unknown): DatabaseError | SchemaMismatch {
  if (error instanceof DatabaseError || error instanceof SchemaMismatch) return error;
  const sqlstate = sqlstateOf(error);
  if (sqlstate === MISSING_CLOCK) return new SchemaMismatch(missingClock('change_clock'));
  if (sqlstate === null) {
    const code = typeof (error as PgError)?.code === 'string' ? ` (${(error as { code: string }).code})` : '';
    const message = `the connection to PostgreSQL failed${code}; ${ADVICE.connection}`;
    return new DatabaseError(null, 'connection', 'retry', message);
  }
  const [, kind, action] =
    MEANINGS.find(([pattern]) => pattern.test(sqlstate)) ?? ([null, 'internal', 'retry'] as const);
  const constraint = constraintOf(error as PgError);
  const named = constraint === undefined ? '' : `, constraint ${constraint}`;
  const advice = Object.hasOwn(ADVICE, kind) ? `; ${ADVICE[kind]}` : '';
  const message = `PostgreSQL refused the statement: ${kind} (SQLSTATE ${sqlstate}${named})${advice}`;
  return new DatabaseError(sqlstate, kind, action, message, constraint);
}

/** PostgreSQL names the column of a violated NOT NULL. */
function constraintOf({ constraint, table, column, code }: PgError): string | undefined {
  if (code === '23502') return `NOT NULL of ${table}.${column}`;
  return typeof constraint === 'string' ? constraint : undefined;
}
