import type { Dispatcher } from 'undici';
import { readJson } from '../http/body.js';
import { errorTextOf } from '../wire.js';

const MAX_BODY_BYTES = 65_536;
const MAX_CHARACTERS = 300;

/**
 * Reads the message of an error body (interface 2.5), as one printable line of at most 300 characters.
 * The body is always read to its end or discarded, so that its connection is free again.
 * @param secrets values to redact in the message
 * @returns undefined if the body does not match the interface
 */
export async function readGermanText(
  response: Dispatcher.ResponseData,
  secrets: readonly string[],
): Promise<string | undefined> {
  const json = await readJson(response, { maxBytes: MAX_BODY_BYTES }).catch(() => undefined); // the status is enough
  const given = errorTextOf(json?.value);
  if (given === null) return undefined;
  const text = secrets.reduce((redacted, secret) => redacted.replaceAll(secret, '[redacted]'), given);
  return oneLine(text) || undefined;
}

function oneLine(text: string): string {
  const characters = [...text.replaceAll(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()];
  return characters.length > MAX_CHARACTERS
    ? `${characters.slice(0, MAX_CHARACTERS - 1).join('')}…`
    : characters.join('');
}
