import tls from 'node:tls';
import { pemCertificates } from './kinds.js';
import type { Reader } from './reader.js';
import { VARIABLES } from './variables.js';

/**
 * Returns a function that reads the file of NODE_EXTRA_CA_CERTS again and returns what to trust instead of Node's own list;
 * undefined while the file is as at the start, when Node.js itself read it.
 */
export function readExtraCertificates(reader: Reader): () => Promise<readonly string[] | undefined> {
  const { name } = VARIABLES.service.extraCaCerts;
  const allowed = 'certificates (PEM)';
  const secretVariable = { ...VARIABLES.service.extraCaCerts, schema: pemCertificates, allowed, secret: true };
  const path = reader.env[name];
  const file = path ? reader.fileSecret(secretVariable, name, path) : null;
  return async () => {
    const changed = await file?.current();
    return changed === undefined || changed === file?.() ? undefined : [...nodeCertificates(), changed];
  };
}

/** Returns the certificates that Node.js trusts without the file. */
function nodeCertificates(): readonly string[] {
  // Since Node.js 22.15.
  const { getCACertificates: get } = tls as { getCACertificates?: (type: 'default' | 'extra') => readonly string[] };
  if (get === undefined) return tls.rootCertificates;
  const extra = new Set(get('extra'));
  return get('default').filter((certificate) => !extra.has(certificate));
}
