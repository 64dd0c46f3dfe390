import type { Failure } from '../../core/errors.js';

/** Raised by the schema itself: `change_clock` has no row. */
const MISSING_CLOCK = 'SF001';
/** Raised by the commit statement: another writer has changed a run that it was to write. */
export const OVERTAKEN = 'SF002';

/** What a SQLSTATE means to the engine. First match wins; the list is ordered from the particular to the general. */
const MEANINGS: readonly (readonly [sqlstate: RegExp, kind: string, action: Failure['action']])[] = [
  [/^25006$/, 'read_only', 'retry'], // a standby, or a failover under way
  [/^25P04$/, 'deadline', 'retry'], // transaction_timeout
  [/^40P01$/, 'deadlock', 'retry'],
  [/^(40|SF002)/, 'serialization', 'retry'],
  [/^55P03$/, 'lock_timeout', 'retry'],
  [/^57014$/, 'cancelled', 'retry'],
  [/^57/, 'shutdown', 'retry'],
  [/^53100$/, 'disk_full', 'retry'],
  [/^53/, 'resources', 'retry'],
  [/^08/, 'connection', 'retry'], // PgBouncer's query_wait_timeout among them
  [/^58/, 'system', 'retry'],
  [/^28/, 'authentication', 'hold'],
  [/^3D/, 'database_missing', 'hold'],
  [/^42501$/, 'permission', 'hold'],
  [/^(42|3F)/, 'schema', 'hold'], // missing or changed tables
  [/^(22|54|23)/, 'data', 'data'],
];

const LOAD = 'look why statements are slow or wait (pg_stat_activity: locks, disk, load)';
const PASSES = 'it passes by itself';

/** What helps a person against a kind of refusal, where that is known. */
const ADVICE: Readonly<Record<string, string>> = {
  read_only: 'it takes no writes: a standby, or a failover under way; check that the address is that of the primary',
  deadline: LOAD,
  deadlock: PASSES,
  serialization: PASSES,
  lock_timeout: LOAD,
  cancelled: `somebody or a time limit ended it; ${LOAD}`,
  shutdown: 'it is stopping or starting; it is waited for',
  disk_full: 'make room on its disk',
  resources: 'it has no memory, connection or room left; see its log',
  connection: 'check the network and what stands between, such as a pooler',
  system: 'its operating system failed it; see its log',
  authentication: 'check the role and its password',
  database_missing: 'create the database, or correct DATABASE_URL or PGDATABASE',
  permission: 'a right is missing; `scanfeed doctor` names it',
  schema: 'a table or column is missing or changed; see `scanfeed doctor`',
};

/**
 * PostgreSQL refused or failed a statement. Its `detail` and `where` echo document content, so only the SQLSTATE and
 * the names of the constraint and column are kept.
 */
export class DatabaseError extends Error implements Failure {
  override readonly name = 'DatabaseError';
  constructor(
    readonly sqlstate: string | null,
    readonly kind: string,
    readonly action: Failure['action'],
    message: string,
  ) {
    super(message);
  }
}

/** The schema in the database is missing, or is one that this release cannot use. Held, and looked at again. */
export class SchemaMismatch extends Error implements Failure {
  override readonly name = 'SchemaMismatch';
  readonly kind = 'schema';
  readonly action = 'hold';
}

export function missingClock(table: string): string {
  return `the table ${table} has lost its one row, without which nothing can be stored: run INSERT INTO ${table} DEFAULT VALUES`;
}

interface PgError {
  code?: unknown;
  severity?: unknown;
  constraint?: unknown;
  routine?: unknown;
}

/** The SQLSTATE of an error that PostgreSQL itself reported; null for lost connections and everything else. */
export function sqlstateOf(error: unknown): string | null {
  if (error instanceof DatabaseError) return error.sqlstate;
  const { code, severity } = (error ?? {}) as PgError;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && typeof severity === 'string' ? code : null;
}

/**
 * Whether the connection may serve no other statement. Told from the SQLSTATE: the driver passes on the severity only as
 * the server's language has it (`FEHLER`). These are the states that end a session (PostgreSQL's FATAL and PANIC); of those
 * that do so only at times, a connection is given up in vain now and then.
 */
export function endsConnection(error: unknown): boolean {
  const sqlstate = sqlstateOf(error);
  return sqlstate === null || ENDING.test(sqlstate);
}

const READ_ONLY = '25006';
const ENDING = new RegExp(`^(08|28|57P|58|XX|${READ_ONLY}|25P0[34]|3D|53300|F0)`);

/** Whether the server takes no writes, such as a standby. The address may lead to the primary by now. */
export function isReadOnly(error: unknown): boolean {
  return sqlstateOf(error) === READ_ONLY;
}

/** Takes any error of the driver; classified by SQLSTATE, never by text. */
export function databaseError(error: unknown): DatabaseError | SchemaMismatch {
  if (error instanceof DatabaseError || error instanceof SchemaMismatch) return error;
  const sqlstate = sqlstateOf(error);
  if (sqlstate === MISSING_CLOCK) return new SchemaMismatch(missingClock('change_clock'));
  if (sqlstate === null) {
    const code = typeof (error as PgError)?.code === 'string' ? ` (${(error as { code: string }).code})` : '';
    const message = `the connection to PostgreSQL failed${code}; ${ADVICE.connection}`;
    return new DatabaseError(null, 'connection', 'retry', message);
  }
  const [, kind, action] = MEANINGS.find(([pattern]) => pattern.test(sqlstate)) ?? [null, 'internal', 'retry' as const];
  const constraint = (error as PgError).constraint;
  const named = typeof constraint === 'string' ? `, constraint ${constraint}` : '';
  const advice = Object.hasOwn(ADVICE, kind) ? `; ${ADVICE[kind]}` : '';
  const message = `PostgreSQL refused the statement: ${kind} (SQLSTATE ${sqlstate}${named})${advice}`;
  return new DatabaseError(sqlstate, kind, action, message);
}
