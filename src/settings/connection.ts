import type { ConnectionParameters } from './database-url.js';
import { PG_VARIABLES } from './database-variables.js';
import { HIDDEN } from './mistakes.js';
import type { Reader, Secret } from './reader.js';
import { type ReportMistake, readTls } from './tls.js';
import type { Variable } from './variables.js';

/** Options of a connection to PostgreSQL, as `pg` takes them. */
export type DatabaseConnection = NonNullable<ReturnType<typeof readConnection>>;

type Source = Secret<ConnectionParameters> | null;

const { password: PASSWORD, ...FALLBACKS } = PG_VARIABLES;

/** Reads a connection from a URL variable. As in libpq, the `PG*` variables supply what the URL does not specify. */
export function readConnection(variable: Variable<ConnectionParameters | null>, reader: Reader) {
  const mistakesBefore = reader.mistakes.length;
  const source: Source = reader.secret(variable);
  const fallbacks = readFallbacks(reader);
  const pgPassword = reader.secret(PASSWORD);
  if (reader.mistakes.length > mistakesBefore) return null;

  const parameters: ConnectionParameters = { ...fallbacks, ...source?.() };
  const { host, user, port = '5432', dbname: database = user, channel_binding: binding = 'disable' } = parameters;
  if (host === undefined || user === undefined) return reportMissing(variable, source, parameters, reader);
  const tls = readTls(parameters, reader, mistakeIn(variable, source, reader));
  if (tls === null) return null;
  if (binding === 'require')
    reader.warnings.push('channel_binding=require is treated as prefer: it is used if the server offers it');
  const password =
    source?.().password === undefined ? pgPassword?.current : async () => (await source.current()).password ?? '';
  const { readAgain, ...options } = tls;
  return {
    host,
    port: Number(port),
    user,
    /** Called for every connection, so that a changed file takes effect. Absent if no password is set. */
    ...(password === undefined ? {} : { password }),
    database,
    ...options,
    enableChannelBinding: binding !== 'disable',
    application_name: 'scanfeed',
    /** Called before each new connection. Returns the options whose files have changed since. */
    readAgain: async () => ({ user: (await source?.current())?.user ?? user, ...(await readAgain()) }),
  };
}

function readFallbacks(reader: Reader): ConnectionParameters {
  const given = Object.entries(FALLBACKS).map(([name, variable]) => [name, reader.value<unknown>(variable)] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== null).map(([name, value]) => [name, String(value)]));
}

function reportMissing(variable: Variable, source: Source, { host, user }: ConnectionParameters, reader: Reader): null {
  const parts = [host === undefined ? 'host (PGHOST)' : '', user === undefined ? 'role (PGUSER)' : ''].filter(Boolean);
  const allowed = `${variable.allowed}; or ${variable.name}_FILE; or PGHOST, PGUSER, PGPASSWORD, PGDATABASE`;
  const reason = host || user || source ? `the ${parts.join(' and the ')} is missing` : undefined;
  reader.addMistake(variable.name, source && HIDDEN, allowed, reason);
  return null;
}

/** Reports mistakes under the variable that the parameter came from. */
function mistakeIn(variable: Variable, source: Source, reader: Reader): ReportMistake {
  return (parameter, reason) => {
    const inUrl = source?.()[parameter] !== undefined;
    const name = inUrl ? variable.name : `PG${parameter.toUpperCase()}`;
    reader.addMistake(name, inUrl ? HIDDEN : (reader.env[name] ?? null), 'TLS parameters as in libpq', reason);
    return null;
  };
}
