import type { ConnectionParameters } from './database-url.js';
import { HIDDEN } from './mistakes.js';
import { OpportunisticTlsSocket } from './opportunistic-tls.js';
import type { Reader, Secret } from './reader.js';
import { chooseTls, type TlsChoice, TlsFault } from './tls.js';
import { VARIABLES, type Variable } from './variables.js';

/** How to reach PostgreSQL, in `pg`'s own terms; nothing is left for `pg` to look up in the environment. */
export type DatabaseConnection = NonNullable<ReturnType<typeof readConnection>>;

type Source = Secret<ConnectionParameters> | null;

/** The connection that a URL variable and, for what the URL leaves open, the `PG*` variables describe; as in libpq. */
export function readConnection(variable: Variable<ConnectionParameters | null>, reader: Reader) {
  const mistakesBefore = reader.mistakes.length;
  const source: Source = reader.secret(variable);
  const fallbacks = readFallbacks(reader);
  if (reader.mistakes.length > mistakesBefore) return null;

  const parameters: ConnectionParameters = { ...fallbacks.parameters, ...source?.() };
  const { host, user } = parameters;
  if (host === undefined || user === undefined) {
    noteMissing(variable, source, parameters, reader);
    return null;
  }
  const blame = blameIn(variable, source, reader);
  const tls = chooseTlsFor(host, parameters, reader, blame);
  if (tls === null) return null;
  const negotiation = sslNegotiation(parameters, tls, blame);
  const binding = channelBinding(parameters, reader, blame);
  const password = source?.().password === undefined ? fallbacks.password : () => source().password ?? '';
  return {
    host,
    port: Number(parameters.port ?? 5432),
    user,
    /** Asked for every connection, so that a changed file counts. Missing where none is set. */
    ...(password === null ? {} : { password }),
    database: parameters.dbname ?? user,
    ssl: tls.opportunistic ? false : tls.ssl,
    sslnegotiation: negotiation,
    enableChannelBinding: binding,
    /** Set where TLS is used only if the server offers it. */
    ...(tls.opportunistic ? { stream: () => new OpportunisticTlsSocket(tls.ssl) } : {}),
    application_name: 'scanfeed',
  };
}

function readFallbacks(reader: Reader) {
  const value = <T>(variable: Variable<T>) => reader.value(variable) ?? undefined;
  const port = value(VARIABLES.pgPort);
  const given = {
    host: value(VARIABLES.pgHost),
    port: port === undefined ? undefined : String(port),
    user: value(VARIABLES.pgUser),
    dbname: value(VARIABLES.pgDatabase),
    sslmode: value(VARIABLES.pgSslMode),
    sslrootcert: value(VARIABLES.pgSslRootCert),
    sslcert: value(VARIABLES.pgSslCert),
    sslkey: value(VARIABLES.pgSslKey),
    sslnegotiation: value(VARIABLES.pgSslNegotiation),
  };
  const parameters = Object.fromEntries(Object.entries(given).filter(([, text]) => text !== undefined));
  return { parameters: parameters as ConnectionParameters, password: reader.secret(VARIABLES.pgPassword) };
}

function noteMissing(variable: Variable, source: Source, { host, user }: ConnectionParameters, reader: Reader): void {
  const parts = [host === undefined ? 'host (PGHOST)' : '', user === undefined ? 'role (PGUSER)' : ''].filter(Boolean);
  const allowed = `${variable.allowed}; or ${variable.name}_FILE; or PGHOST, PGUSER, PGPASSWORD, PGDATABASE`;
  const value = source === null ? null : HIDDEN;
  reader.mistake(
    variable.name,
    value,
    allowed,
    host || user || source ? `the ${parts.join(' and the ')} is missing` : undefined,
  );
}

type Blame = (parameter: keyof ConnectionParameters, allowed: string, reason: string) => void;

/** Notes a mistake under the variable that the parameter came from. */
function blameIn(variable: Variable, source: Source, reader: Reader): Blame {
  return (parameter, allowed, reason) => {
    const inUrl = source?.()[parameter] !== undefined;
    const name = inUrl ? variable.name : `PG${parameter.toUpperCase()}`;
    reader.mistake(name, inUrl ? HIDDEN : (reader.env[name] ?? null), allowed, reason);
  };
}

function chooseTlsFor(host: string, parameters: ConnectionParameters, reader: Reader, blame: Blame): TlsChoice | null {
  if (host.startsWith('/')) return { ssl: false, opportunistic: false }; // libpq ignores sslmode on a Unix socket
  try {
    return chooseTls(parameters, reader.env.HOME, reader.readFile);
  } catch (error) {
    if (!(error instanceof TlsFault)) throw error;
    blame(error.parameter, 'TLS parameters as libpq has them', error.message);
    return null;
  }
}

function sslNegotiation({ sslnegotiation }: ConnectionParameters, tls: TlsChoice, blame: Blame): 'postgres' | 'direct' {
  const allowed = 'postgres, or direct with sslmode=require or stricter';
  if (sslnegotiation === undefined || sslnegotiation === 'postgres') return 'postgres';
  if (sslnegotiation !== 'direct') blame('sslnegotiation', allowed, 'sslnegotiation is neither');
  else if (tls.ssl === false || tls.opportunistic) blame('sslnegotiation', allowed, 'sslmode is weaker');
  return 'direct';
}

function channelBinding({ channel_binding }: ConnectionParameters, reader: Reader, blame: Blame): boolean {
  if (channel_binding === undefined || channel_binding === 'disable') return false;
  if (channel_binding !== 'prefer' && channel_binding !== 'require') {
    blame('channel_binding', 'disable, prefer or require', 'channel_binding is none of them');
  }
  if (channel_binding === 'require') {
    reader.warnings.push('channel_binding=require is taken as prefer: used where the server offers it');
  }
  return true;
}
