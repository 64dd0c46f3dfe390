import { z } from 'zod';
import type { Kind } from './kinds.js';

/** Connection parameters by their libpq names. */
export type ConnectionParameters = Readonly<Partial<Record<ParameterName, string>>>;

export type ParameterName = (typeof SUPPORTED)[number];

const SUPPORTED = [
  'host',
  'port',
  'user',
  'password',
  'dbname',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslnegotiation',
  'channel_binding',
] as const;

/** Parameters that change nothing of what scanfeed does, or that it decides by itself. Anything else is refused. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  'application_name',
  'fallback_application_name',
  'client_encoding',
  'connect_timeout',
  'keepalives',
  'keepalives_idle',
  'keepalives_interval',
  'keepalives_count',
  'tcp_user_timeout',
  'target_session_attrs', // a server that only reads is noticed by its answer, and tried again
  'pgbouncer', // said to other libraries: no prepared statements, of which there are none here
]);

/** Several hosts are no setting of `pg`, and a list cannot say which of them is the primary. */
const ONE_HOST =
  'it names more than one host; name one address that leads to the primary, such as that of a service, a virtual IP or a pooler';

/** The host of `PGHOST`: one, as in the URL. */
export const databaseHost: Kind<string> = {
  allowed: 'one host, or the folder of a Unix socket',
  schema: z
    .string()
    .regex(/^[^\p{Cc}]+$/u)
    .refine((text) => !text.includes(','), { message: ONE_HOST }),
};

/** The URL form of libpq's connection string (PostgreSQL documentation, 34.1.1.2), with one host. */
export const databaseUrl: Kind<ConnectionParameters> = {
  allowed: 'postgres://user:password@host:port/database?sslmode=…, special characters as %XX',
  schema: z.string().transform((text, context) => {
    const read = readDatabaseUrl(text);
    if (typeof read !== 'string') return read;
    context.addIssue({ code: 'custom', message: read }); // without `input`: it holds the password
    return z.NEVER;
  }),
};

/** The parameters, or what is wrong. Never quotes more than names of parameters, and those only where they are no secret. */
function readDatabaseUrl(text: string): ConnectionParameters | string {
  if (!/^postgres(ql)?:\/\//.test(text)) return 'it does not begin with postgres:// or postgresql://';
  const unescaped = unescapedCharacter(text);
  if (unescaped !== null) return unescaped;
  if (/^[^/]+:\/\/([^/?]*@)?[^/?]*,/.test(text)) return ONE_HOST;
  if (!URL.canParse(text)) return 'it is no valid URL';
  const url = new URL(text);
  const found: Record<string, string> = {};
  try {
    const host = decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, '$1');
    const inOrder = [
      ['user', decodeURIComponent(url.username)],
      ['password', decodeURIComponent(url.password)],
      ['host', host],
      ['port', url.port],
      ['dbname', decodeURIComponent(url.pathname.slice(1))],
      ...queryParameters(url.search),
    ] as const;
    for (const [name, value] of inOrder) if (value !== '') found[name] = value; // of two, the later counts, as in libpq
  } catch {
    return 'it holds a % that is not followed by two hexadecimal digits of UTF-8; a % itself is written %25';
  }
  const unsupported = Object.keys(found).filter((name) => !isSupported(name) && !WITHOUT_EFFECT.has(name));
  if (unsupported.length > 0) return unsupportedParameters(unsupported, url.search);
  if (found.host?.includes(',')) return ONE_HOST;
  const { port = '5432' } = found;
  if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
    return 'its port is no number from 1 to 65535';
  return Object.fromEntries(Object.entries(found).filter(([name]) => isSupported(name)));
}

/**
 * A character of the role or password that would end it early, so that the rest is taken for a host, a database or
 * parameters. Whatever of it follows such a / or ? ends in an @, which no address has there. An @ in a password does no
 * harm, since the last one counts; a % can only be told where no two digits follow.
 */
function unescapedCharacter(text: string): string | null {
  if (text.includes('#')) return 'it holds a #, which is written %23';
  if (/[\t\r\n]/.test(text.trim())) return 'it holds a tab or the end of a line (%09, %0A, %0D)';
  const [, path = ''] = /^postgres(?:ql)?:\/\/[^/?]*([^?]*)/.exec(text) ?? [];
  if (path.includes('@')) return 'it holds an @ behind a /: in the role and the password / is written %2F, and @ %40';
  if (/[?&][^=&]+(&|$)/.test(text))
    return 'it has a parameter without =; in the role and the password ? is written %3F';
  return null;
}

/** What is not supported; unless it may be the rest of a password that holds a question mark. */
function unsupportedParameters(names: readonly string[], search: string): string {
  if (!search.includes('@')) return `its parameter ${names.join(', ')} is not supported`;
  return 'it has a parameter that is not supported; in the role and the password ? is written %3F';
}

/** Unlike in HTML forms, a + is a plus here. */
function queryParameters(search: string): [string, string][] {
  return search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return [decodeURIComponent(name), decodeURIComponent(value.join('='))];
    });
}

function isSupported(name: string): name is ParameterName {
  return (SUPPORTED as readonly string[]).includes(name);
}
