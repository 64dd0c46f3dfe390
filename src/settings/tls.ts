import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type ConnectionOptions, createSecureContext } from 'node:tls';
import { parse } from 'pg-connection-string';
import type { ConnectionParameters } from './database-url.js';
import type { Reader } from './reader.js';
import { readText, rereading } from './reread.js';

export type ReportMistake = (parameter: keyof ConnectionParameters, reason: string) => null;

const WITHOUT_TLS = {
  ssl: false,
  tlsOptional: false,
  sslnegotiation: 'postgres',
  readAgain: async () => ({}),
} as const;

/**
 * Returns the driver's TLS options for `sslmode` and its files, read as in libpq (PostgreSQL documentation, 34.19.1).
 * `allow` is treated as `prefer`.
 * @param env its HOME may contain libpq's default root certificate
 * @returns null if a mistake was reported
 */
export function readTls(given: ConnectionParameters, { env, onKept }: Reader, mistake: ReportMistake) {
  if (given.host?.startsWith('/')) return WITHOUT_TLS; // on a Unix socket libpq ignores the other parameters
  const { sslcert = '', sslkey = '', sslrootcert = defaultRoot(env.HOME), sslnegotiation = 'postgres' } = given;
  const { sslmode = sslrootcert === 'system' ? 'verify-full' : 'prefer' } = given;
  const tlsOptional = sslmode === 'allow' || sslmode === 'prefer';
  if (sslrootcert === 'system' && sslmode !== 'verify-full')
    return mistake('sslmode', 'sslrootcert=system requires sslmode=verify-full');
  if (sslmode.startsWith('verify-') && sslrootcert === '')
    return mistake('sslmode', `sslmode=${sslmode} requires sslrootcert: a file of CA certificates, or system`);
  if (sslnegotiation === 'direct' && (tlsOptional || sslmode === 'disable'))
    return mistake('sslnegotiation', 'sslnegotiation=direct requires sslmode=require or stricter');
  if (sslmode === 'disable') return WITHOUT_TLS;
  if ((sslcert === '') !== (sslkey === ''))
    return mistake(sslcert === '' ? 'sslkey' : 'sslcert', 'sslcert and sslkey must be set together');

  const files = { sslrootcert: sslrootcert === 'system' ? '' : sslrootcert, sslcert, sslkey };
  const mode = tlsOptional ? 'prefer' : sslmode;
  const ssl = readOptions(mode, files, mistake);
  if (ssl === null) return null;
  const names = NAMES.filter((name) => files[name] !== '');
  const paths = names.map((name) => files[name]);
  const variable = names.map((name) => `PG${name.toUpperCase()}`).join(', ');
  const read = {
    variable,
    files: paths,
    texts: paths.map(readText),
    value: ssl,
    parse: () => loadOptions(mode, files),
  };
  const current = rereading(read, readText, onKept);
  const readAgain = async () => ({ ssl: await current() });
  return { ssl, tlsOptional, sslnegotiation: sslnegotiation as 'postgres' | 'direct', readAgain };
}

function defaultRoot(home: string | undefined): string {
  const path = `${home}/.postgresql/root.crt`;
  return existsSync(path) ? path : '';
}

const NAMES = ['sslrootcert', 'sslcert', 'sslkey'] as const;
type Files = Readonly<Record<(typeof NAMES)[number], string>>;

/** The library reads the files; an empty path means no file. */
function loadOptions(sslmode: string, files: Files): ConnectionOptions {
  const { ssl } = parse(`postgres://?${new URLSearchParams({ sslmode, ...files })}`, { useLibpqCompat: true });
  const options: ConnectionOptions = { rejectUnauthorized: true, ...(ssl as object) };
  if (options.ca !== undefined) new X509Certificate(options.ca as string); // if it is empty, Node.js would use its own list
  createSecureContext(options);
  // As the driver does later: no text of the settings shows the key.
  return 'key' in options ? Object.defineProperty(options, 'key', { enumerable: false }) : options;
}

function readOptions(sslmode: string, files: Files, mistake: ReportMistake): ConnectionOptions | null {
  try {
    return loadOptions(sslmode, files);
  } catch (error) {
    const { code = 'no certificate', path } = error as NodeJS.ErrnoException;
    const given = NAMES.filter((name) => files[name] !== '');
    const suspects = given.filter((name) => path === undefined || path === files[name]);
    return mistake(suspects[0] ?? 'sslmode', `the file of ${suspects.join(' or ')} cannot be used (${code})`);
  }
}
