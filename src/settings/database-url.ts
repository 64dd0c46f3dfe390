import { parse } from 'pg-connection-string';
import { z } from 'zod';
import { integer, type Kind, oneOf, text } from './kinds.js';
import { filePath, words } from './variable.js';

/** Connection parameters by their libpq names. The `PG*` variables accept the same values. */
export const PARAMETERS = {
  host: text(
    'one host, or the folder of a Unix socket; with several servers, an address of the primary, such as a service, a virtual IP or a pooler',
    /^[^\p{Cc},]+$/u,
  ),
  port: integer(1, 65_535),
  user: words,
  password: text('text without NUL', /^[^\0]+$/),
  dbname: words,
  sslmode: oneOf('disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'),
  sslrootcert: filePath,
  sslcert: filePath,
  sslkey: filePath,
  sslnegotiation: oneOf('postgres', 'direct'),
  channel_binding: oneOf('disable', 'prefer', 'require'),
} as const;

export type ConnectionParameters = Readonly<Partial<Record<keyof typeof PARAMETERS, string>>>;

const KINDS = new Map<string, Kind<unknown>>(Object.entries(PARAMETERS));

/** Parameters without effect in scanfeed: names, encoding, time limits, and hints for other libraries. */
const WITHOUT_EFFECT =
  /^((fallback_)?application_name|client_encoding|connect_timeout|keepalives(_idle|_interval|_count)?|tcp_user_timeout|target_session_attrs|pgbouncer|uselibpqcompat)$/;

/** Common mistakes, most of them special characters in a password. The first match wins. */
const MISTAKES: readonly (readonly [form: RegExp, mistake: string])[] = [
  [/^\w+\s*=/, 'the form host=… dbname=… is not supported; write it as a URL, or set the PG* variables'],
  [/^(?!postgres(ql)?:\/\/)/, 'it does not begin with postgres:// or postgresql://'],
  [/#/, 'it contains a #, which is written as %23'],
  [/[\t\r\n]/, 'it contains a tab or a line break (%09, %0A, %0D)'],
  [
    /^\w+:\/\/[^/?]*\/[^?]*@/,
    'it contains an @ after a /; in the role and the password, / is written as %2F and @ as %40',
  ],
  [/[?&][^=&]+(&|$)/, 'it has a parameter without =; in the role and the password, ? is written as %3F'],
  [/^\w+:\/\/[^/?]*,[^/?@]*([/?]|$)/, `its host must be ${PARAMETERS.host.description}`],
];

/** The URL form of libpq's connection string (PostgreSQL documentation, 34.1.1.2), with one host. */
export const databaseUrl: Kind<ConnectionParameters> = z
  .string()
  .transform((given, context) => {
    const parameters = readUrl(given.trim());
    if (typeof parameters !== 'string') return parameters;
    context.addIssue({ code: 'custom', message: parameters }); // without `input`: it holds the password
    return z.NEVER;
  })
  .describe('postgres://user:password@host:port/database?sslmode=…, special characters as %XX');

/** Returns the parameters, or a description of the mistake. It never quotes a value, which may be part of the password. */
function readUrl(url: string): ConnectionParameters | string {
  const [, mistake] = MISTAKES.find(([form]) => form.test(url)) ?? [];
  if (mistake !== undefined) return mistake;
  try {
    const given = Object.entries(splitUrl(url)).filter(([name]) => !WITHOUT_EFFECT.test(name));
    return findMistake(given, url) ?? Object.fromEntries(given);
  } catch (error) {
    if (!(error instanceof URIError)) return 'it is not a valid URL'; // the error itself may contain the URL
    return 'it contains a % that is not followed by two hexadecimal digits of UTF-8; a % itself is written as %25';
  }
}

/** If a parameter is given twice, the last one counts, as in libpq. */
function splitUrl(url: string): Record<string, string> {
  decodeURIComponent(url); // throws on a wrong %, which the library accepts
  const [address = '', ...rest] = url.replaceAll(' ', '%20').split('?');
  const { user, password, host, port } = parse(address);
  const [, path = ''] = /^\w+:\/\/[^/]*\/(.*)/.exec(address) ?? []; // the library does not decode %2F in it
  const query = new URLSearchParams(rest.join('?').replaceAll('+', '%2B')); // a + is a plus, unlike in HTML forms
  const inOrder = [...Object.entries({ user, password, host, port, dbname: decodeURIComponent(path) }), ...query];
  return Object.fromEntries(inOrder.filter((pair): pair is [string, string] => Boolean(pair[1])));
}

function findMistake(given: readonly (readonly [name: string, value: string])[], url: string): string | null {
  for (const [name, value] of given) {
    const kind = KINDS.get(name);
    if (kind?.safeParse(value).success) continue;
    if (kind !== undefined) return `its ${name} must be ${kind.description}`;
    if (!url.includes('@', url.indexOf('?'))) return `its parameter ${name} is not supported`;
    return 'it has a parameter that is not supported; in the role and the password, ? is written as %3F'; // perhaps a password
  }
  return null;
}
