import { randomBytes } from 'node:crypto';

/** Unmistakable words; in a file of tests each secret is one of its own. */
export function canary(name: string): string {
  return `canary-${name}-${randomBytes(8).toString('hex')}`;
}

/** The names of the secrets that a text shows: as they are, or encoded as in a URL, in Base64 or in hex. */
export function findExposed(text: string, secrets: Readonly<Record<string, string>>): string[] {
  const shown = (secret: string) => {
    const bytes = Buffer.from(secret);
    return [secret, encodeURIComponent(secret), bytes.toString('base64').slice(0, -4), bytes.toString('hex')];
  };
  return Object.entries(secrets).flatMap(([name, secret]) =>
    shown(secret).some((form) => text.includes(form)) ? [name] : [],
  );
}
