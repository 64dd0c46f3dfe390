import { DatabaseError, databaseError, type SchemaMismatch } from './errors.js';

/** The destination of a connection. Contains no secrets. */
export interface Destination {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly user?: string | undefined;
  readonly database?: string | undefined;
  /** Deadline of the connection and its login, milliseconds. */
  readonly deadlineMs: number;
}

const SETTINGS = 'host and port (DATABASE_URL, or PGHOST and PGPORT)';

/** Remedies by error code of the operating system or of TLS. The first match wins. */
const REMEDIES: readonly (readonly [code: RegExp, remedy: string])[] = [
  [/^ECONNREFUSED$/, `nothing listens there; start PostgreSQL, or correct ${SETTINGS}`],
  [/^(ENOTFOUND|EAI_NONAME|EAI_NODATA)$/, `the host name is unknown; correct ${SETTINGS}`],
  [/^EAI_/, 'the host name could not be resolved; check DNS'],
  [/^ENOENT$/, `this folder contains no socket of PostgreSQL; start PostgreSQL, or correct ${SETTINGS}`],
  [/^(EACCES|EPERM)$/, 'the operating system denied it; check the permissions of the socket and the network policies'],
  [/^(EHOSTUNREACH|ENETUNREACH|ENETDOWN)$/, 'there is no route to the host; check the network and its policies'],
  [/^ETIMEDOUT$/, 'the host does not respond; check the network, its policies and firewalls'],
  [/^(ECONNRESET|EPIPE)$/, 'the server closed the connection before the login; check its log'],
  [
    /^(CERT_|UNABLE_TO_|ERR_TLS_CERT_|CRL_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|HOSTNAME_MISMATCH$|INVALID_CA$)/,
    'its certificate is not trusted; check sslrootcert and sslmode, and that the certificate is issued for this host name',
  ],
  [/^(ERR_SSL_|ERR_TLS_|ERR_OSSL_|EPROTO$)/, 'the TLS handshake failed; check sslmode, sslcert and sslkey'],
];

const PASSWORD =
  'check the role and its password (DATABASE_URL, where special characters in the password are escaped as %XX, or PGUSER and PGPASSWORD)';

/** Messages for refused logins, by SQLSTATE. Other errors are not about the login. */
const REFUSED: Readonly<Record<string, (login: Login) => string>> = {
  '28P01': ({ at, role }) => `${at} refused the password of ${role}; ${PASSWORD}`,
  '28000': ({ at, role, database }) =>
    `${at} refused ${role} access to the database ${database}; check that the role exists and is allowed to log in, and pg_hba.conf (host, database, role, TLS)`,
  '3D000': ({ at, database }) => `${at} has no database ${database}; create it, or correct DATABASE_URL or PGDATABASE`,
  '42501': ({ at, role, database }) => `${at} refused ${role} access to the database ${database}; GRANT CONNECT on it`,
  '53300': ({ at }) =>
    `${at} has no free connection; raise max_connections or the limit of the role, or lower SCANFEED_DATABASE_POOL`,
  '57P03': ({ at }) => `${at} is starting, stopping or recovering; scanfeed retries until it is available`,
  '08P01': ({ at }) => `${at} refused the connection; if it is a pooler, its log contains the server's reason`,
};

interface Login {
  readonly at: string;
  readonly role: string;
  readonly database: string;
}

/**
 * Creates the error of a failed connection, with host, port and remedy. Its kind and action are those of {@link databaseError}.
 * Omits the server's own text, which may contain anything.
 */
export function connectError(error: unknown, to: Destination): DatabaseError | SchemaMismatch {
  const plain = databaseError(error);
  if (!(plain instanceof DatabaseError)) return plain;
  const { sqlstate, kind, action } = plain;
  const message = sqlstate === null ? unreached(error, to) : refused(sqlstate, kind, to);
  return new DatabaseError(sqlstate, kind, action, message);
}

/**
 * Creates the error for a pool without a free connection: the server is reachable, but slow.
 * @param sizeSetting the setting with the size of the pool, if it has one
 */
export function poolExhausted(
  to: Omit<Destination, 'deadlineMs'>,
  deadlineMs: number,
  sizeSetting?: string,
): DatabaseError {
  const larger = sizeSetting === undefined ? '' : `, or raise ${sizeSetting}`;
  return new DatabaseError(
    null,
    'pool_exhausted',
    'retry',
    `all connections to PostgreSQL at ${addressOf(to)} were in use for ${deadlineMs / 1000} s; find out why statements are slow (locks, disk, load)${larger}`,
  );
}

function refused(sqlstate: string, kind: string, to: Destination): string {
  const login = {
    at: `PostgreSQL at ${addressOf(to)}`,
    role: `the role ${quoted(to.user)}`,
    database: quoted(to.database),
  };
  const describe = Object.hasOwn(REFUSED, sqlstate) ? REFUSED[sqlstate] : undefined;
  const message = describe === undefined ? `${login.at} refused the connection: ${kind}` : describe(login);
  return `${message} (SQLSTATE ${sqlstate})`;
}

function unreached(error: unknown, to: Destination): string {
  const code = codeOf(error);
  const [, remedy] = REMEDIES.find(([pattern]) => pattern.test(code ?? '')) ?? [];
  const advice =
    remedy ??
    REMEDY_BY_MESSAGE.get((error as Error | null)?.message ?? '') ??
    `no login within ${to.deadlineMs / 1000} s, or the connection was closed; check DNS, that PostgreSQL is running, and its log`;
  return `no connection to PostgreSQL at ${addressOf(to)}${code === null ? '' : ` (${code})`}: ${advice}`;
}

/** Remedies by message of the driver, for its errors without a code. The message selects only the remedy. */
const REMEDY_BY_MESSAGE: ReadonlyMap<string, string> = new Map([
  [
    'The server does not support SSL connections',
    'it has no TLS, but sslmode requires it; enable ssl on the server or change sslmode',
  ],
  [
    'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string',
    `it requires a password, but none is set; ${PASSWORD}`,
  ],
  [
    'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a non-empty string',
    `it requires a password, but none is set; ${PASSWORD}`,
  ],
]);

function codeOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : null;
}

function addressOf({ host = 'localhost', port = 5432 }: Pick<Destination, 'host' | 'port'>): string {
  if (host.startsWith('/')) return `${host}/.s.PGSQL.${port}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Quotes a name; the result has no line breaks. */
function quoted(name = ''): string {
  return JSON.stringify(name);
}
