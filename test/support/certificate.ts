import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** A certificate that signs itself, so it is also the authority to trust. Each test creates its own; nothing is stored. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

const DAY_MS = 86_400_000;
/** Object identifiers, DER-encoded: ecdsa-with-SHA256, commonName, subjectAltName. */
const OID = { ecdsaSha256: '2a8648ce3d040302', commonName: '550403', subjectAltName: '551d11' };

/** For these names: host names, or IPv4 addresses (RFC 5280). */
export function testCertificate(...names: string[]): TestCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid(OID.ecdsaSha256));
  const name = sequence(der(0x31, sequence(oid(OID.commonName), der(0x0c, Buffer.from('test')))));
  const validity = sequence(utcTime(Date.now() - DAY_MS), utcTime(Date.now() + DAY_MS));
  const alternatives = sequence(oid(OID.subjectAltName), der(0x04, sequence(...names.map(generalName))));
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.concat([Buffer.from([0x01]), randomBytes(8)])),
    algorithm,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(alternatives)),
  );
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]));
  const base64 = sequence(body, algorithm, signature).toString('base64');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function generalName(name: string): Buffer {
  const isAddress = /^[\d.]+$/.test(name);
  return isAddress ? der(0x87, Buffer.from(name.split('.').map(Number))) : der(0x82, Buffer.from(name));
}

function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\D/g, '').slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
