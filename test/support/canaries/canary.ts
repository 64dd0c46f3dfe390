import { randomBytes } from 'node:crypto';
import { customer, partners } from '../../../src/emulator/model/catalogue.js';

/** Unmistakable words; in a file of tests each secret is one of its own. */
export function canary(name: string): string {
  return `canary-${name}-${randomBytes(8).toString('hex')}`;
}

/**
 * What no output of the program may show, in any test: words that every key, password and document of the tests has in
 * it. Those of the emulator's documents come from its catalogue, the others from the builders of test/support.
 */
const NEVER_SHOWN: readonly string[] = [
  'canary-',
  'emulator-key',
  'key-of-the-test',
  'pass-of-the-test',
  'Muster GmbH',
  '12345678901234567890',
  customer.name,
  ...partners.flatMap(({ name, iban }) => [name, iban]),
];

/** The names of the secrets that a text shows: as they are, or encoded as in a URL, in JSON, in Base64 or in hex. */
export function findExposed(text: string, secrets: Readonly<Record<string, string>>): string[] {
  return Object.entries(secrets).flatMap(([name, secret]) =>
    formsOf(secret).some((form) => text.includes(form)) ? [name] : [],
  );
}

/** The first place of a text that shows what no output may show; null where there is none. */
export function findCanary(text: string): string | null {
  for (const form of FORMS) {
    const at = text.indexOf(form);
    if (at >= 0) return text.slice(Math.max(0, at - 60), at + form.length + 40);
  }
  return null;
}

function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  const escaped = JSON.stringify(secret).slice(1, -1);
  return [secret, escaped, encodeURIComponent(secret), bytes.toString('hex'), ...base64Forms(bytes)];
}

/** In the middle of a longer text Base64 shows the same bytes in one of three ways; what its neighbours share is left out. */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].map((before) => {
    const shifted = Buffer.concat([Buffer.alloc(before), bytes]);
    const whole = Math.floor((shifted.length * 8) / 6);
    return shifted.toString('base64').slice(Math.ceil((before * 8) / 6), whole);
  });
}

const FORMS: readonly string[] = [...new Set(NEVER_SHOWN.flatMap(formsOf))];
