import { DatabaseError, databaseError, type SchemaMismatch } from './errors.js';

/** Where a connection was to lead. Nothing of it is secret: the password is not here. */
export interface Destination {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly user?: string | undefined;
  readonly database?: string | undefined;
  /** How long a connection may take, milliseconds. */
  readonly deadlineMs: number;
}

const SETTINGS = 'host and port (DATABASE_URL, or PGHOST and PGPORT)';

/** What helps, by the code of the operating system or of TLS. First match wins. */
const REMEDIES: readonly (readonly [code: RegExp, remedy: string])[] = [
  [/^ECONNREFUSED$/, `nothing listens there; start PostgreSQL, or correct ${SETTINGS}`],
  [/^(ENOTFOUND|EAI_NONAME|EAI_NODATA)$/, `no such host is known; correct ${SETTINGS}`],
  [/^EAI_/, 'its name cannot be looked up now; check DNS'],
  [/^ENOENT$/, `there is no socket of PostgreSQL in that folder; start PostgreSQL, or correct ${SETTINGS}`],
  [/^(EACCES|EPERM)$/, 'the operating system forbids it; check the rights on the socket, and network policies'],
  [/^(EHOSTUNREACH|ENETUNREACH|ENETDOWN)$/, 'no way leads there; check the network and its policies'],
  [/^ETIMEDOUT$/, 'there was no answer; check the network, its policies and firewalls'],
  [/^(ECONNRESET|EPIPE)$/, 'the server ended the connection before the login; check its log'],
  [
    /^(CERT_|UNABLE_TO_|ERR_TLS_CERT_|CRL_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|HOSTNAME_MISMATCH$|INVALID_CA$)/,
    'its certificate is not trusted; check sslrootcert and sslmode, and that the host is named as in the certificate',
  ],
  [/^(ERR_SSL_|ERR_TLS_|ERR_OSSL_|EPROTO$)/, 'TLS could not be agreed on; check sslmode, sslcert and sslkey'],
];

const PASSWORD =
  'check the role and its password (DATABASE_URL, where special characters of a password are written as %XX, or PGUSER and PGPASSWORD)';

/** What a refused login says, by its SQLSTATE. Other errors of the server are no matter of the login. */
const REFUSED: Readonly<Record<string, (login: Login) => string>> = {
  '28P01': ({ at, role }) => `${at} refused the password of ${role}; ${PASSWORD}`,
  '28000': ({ at, role, database }) =>
    `${at} does not let ${role} into the database ${database}; check that the role exists and may log in, and pg_hba.conf (host, database, role, TLS)`,
  '3D000': ({ at, database }) => `${at} has no database ${database}; create it, or correct DATABASE_URL or PGDATABASE`,
  '42501': ({ at, role, database }) => `${at} does not let ${role} into the database ${database}; GRANT CONNECT on it`,
  '53300': ({ at }) =>
    `${at} has no connection left; raise max_connections or the role's limit, or lower SCANFEED_DATABASE_POOL`,
  '57P03': ({ at }) => `${at} is starting, stopping or recovering; it is waited for`,
  '08P01': ({ at }) => `${at} refused the connection; where that is a pooler, its log says how the server refused it`,
};

interface Login {
  readonly at: string;
  readonly role: string;
  readonly database: string;
}

/**
 * The error of a connection that could not be had, with host, port and remedy. The kind and action are those of
 * {@link databaseError}. What the server said is dropped: it may be anything.
 */
export function connectError(error: unknown, to: Destination): DatabaseError | SchemaMismatch {
  const plain = databaseError(error);
  if (!(plain instanceof DatabaseError)) return plain;
  const { sqlstate, kind, action } = plain;
  const message = sqlstate === null ? unreached(error, to) : refused(sqlstate, kind, to);
  return new DatabaseError(sqlstate, kind, action, message);
}

/** No connection came free in time: the server is there, and takes long. */
export function poolUsedUp(to: Destination): DatabaseError {
  return new DatabaseError(
    null,
    'pool_used_up',
    'retry',
    `all connections to PostgreSQL at ${addressOf(to)} were in use for ${to.deadlineMs / 1000} s; look why statements are slow (locks, disk, load), or raise SCANFEED_DATABASE_POOL`,
  );
}

function refused(sqlstate: string, kind: string, to: Destination): string {
  const login = {
    at: `PostgreSQL at ${addressOf(to)}`,
    role: `the role ${quoted(to.user)}`,
    database: quoted(to.database),
  };
  const say = Object.hasOwn(REFUSED, sqlstate) ? REFUSED[sqlstate] : undefined;
  return `${say === undefined ? `${login.at} refused the connection: ${kind}` : say(login)} (SQLSTATE ${sqlstate})`;
}

function unreached(error: unknown, to: Destination): string {
  const code = codeOf(error);
  const [, remedy] = REMEDIES.find(([pattern]) => pattern.test(code ?? '')) ?? [];
  const advice =
    remedy ??
    DRIVER_SAYS.get((error as Error | null)?.message ?? '') ??
    `no login within ${to.deadlineMs / 1000} s, or ended before; check DNS, that PostgreSQL is there, and its log`;
  return `no connection to PostgreSQL at ${addressOf(to)}${code === null ? '' : ` (${code})`}: ${advice}`;
}

/** The driver's own words for what has no code. They only choose the advice; nothing else depends on them. */
const DRIVER_SAYS: ReadonlyMap<string, string> = new Map([
  [
    'The server does not support SSL connections',
    'it has no TLS, and sslmode asks for it; turn on its ssl or set sslmode',
  ],
  [
    'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string',
    `it wants a password, and none is set; ${PASSWORD}`,
  ],
  [
    'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a non-empty string',
    `it wants a password, and none is set; ${PASSWORD}`,
  ],
]);

function codeOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : null;
}

function addressOf({ host = 'localhost', port = 5432 }: Destination): string {
  if (host.startsWith('/')) return `${host}/.s.PGSQL.${port}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** On one line, whatever it holds. */
function quoted(name = ''): string {
  return JSON.stringify(name);
}
