import type { ConnectionOptions } from 'node:tls';
import type { ConnectionParameters } from './database-url.js';
import type { ReadFile } from './reader.js';

const MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
type SslMode = (typeof MODES)[number];

/** The TLS parameters of a connection. */
type TlsParameters = Pick<ConnectionParameters, 'sslmode' | 'sslrootcert' | 'sslcert' | 'sslkey'>;

export type TlsChoice = ReturnType<typeof chooseTls>;

/** What is wrong with a parameter, in words. */
export class TlsFault extends Error {
  constructor(
    readonly parameter: keyof TlsParameters,
    message: string,
  ) {
    super(message);
  }
}

/**
 * `sslmode` and `sslrootcert` as libpq has them (PostgreSQL documentation, 34.19.1): `require` encrypts without a look
 * at the certificate unless there is a root certificate, then it is `verify-ca`; `verify-ca` checks the chain, not the
 * name; `verify-full` both. `allow` is taken as `prefer`, which is opportunistic: encrypted where the server offers it,
 * unverified, else not at all.
 * @param home the user's folder, for libpq's default root certificate
 * @throws TlsFault
 */
export function chooseTls(parameters: TlsParameters, home: string | undefined, readFile: ReadFile) {
  const mode = sslMode(parameters);
  if (mode === 'disable') return { ssl: false, opportunistic: false } as const;
  const client = clientCertificate(parameters, readFile);
  const opportunistic = mode === 'allow' || mode === 'prefer';
  const verified = opportunistic ? { rejectUnauthorized: false } : verification(mode, parameters, home, readFile);
  return { ssl: withKey({ ...client.shown, ...verified }, client.key), opportunistic };
}

function sslMode({ sslmode, sslrootcert }: TlsParameters): SslMode {
  const mode = MODES.find((known) => known === (sslmode ?? (sslrootcert === 'system' ? 'verify-full' : 'prefer')));
  if (mode === undefined) throw new TlsFault('sslmode', `sslmode is none of ${MODES.join(', ')}`);
  if (sslrootcert === 'system' && mode !== 'verify-full')
    throw new TlsFault('sslmode', 'sslrootcert=system needs sslmode=verify-full');
  return mode;
}

function verification(
  mode: Exclude<SslMode, 'disable' | 'allow' | 'prefer'>,
  { sslrootcert }: TlsParameters,
  home: string | undefined,
  readFile: ReadFile,
): ConnectionOptions {
  if (sslrootcert === 'system') return { rejectUnauthorized: true };
  const ca = sslrootcert === undefined ? defaultRoot(home, readFile) : pem('sslrootcert', sslrootcert, readFile);
  if (ca === null) {
    if (mode === 'require') return { rejectUnauthorized: false };
    throw new TlsFault('sslmode', `sslmode=${mode} needs sslrootcert: a file of authorities, or system`);
  }
  // The chain is checked, the name is not.
  return { ca, rejectUnauthorized: true, ...(mode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }) };
}

function defaultRoot(home: string | undefined, readFile: ReadFile): string | null {
  if (!home) return null;
  try {
    return readFile(`${home}/.postgresql/root.crt`);
  } catch {
    return null;
  }
}

function clientCertificate({ sslcert, sslkey }: TlsParameters, readFile: ReadFile) {
  if (sslcert === undefined && sslkey === undefined) return { shown: {}, key: null };
  if (sslcert === undefined || sslkey === undefined)
    throw new TlsFault('sslmode', 'sslcert and sslkey belong together');
  return { shown: { cert: pem('sslcert', sslcert, readFile) }, key: pem('sslkey', sslkey, readFile) };
}

/** The driver hides the key in the same way, which a frozen object would not let it do. */
function withKey(options: ConnectionOptions, key: string | null): ConnectionOptions {
  return key === null ? options : Object.defineProperty(options, 'key', { value: key, enumerable: false });
}

function pem(parameter: keyof TlsParameters, path: string, readFile: ReadFile): string {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    throw new TlsFault(parameter, `the file of ${parameter} cannot be read (${code})`);
  }
  if (!text.includes('-----BEGIN ')) throw new TlsFault(parameter, `the file of ${parameter} holds no PEM`);
  return text;
}
