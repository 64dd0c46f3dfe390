import type { Dispatcher } from 'undici';
import { readJson } from '../http/body.js';
import { errorBodySchema } from '../wire.js';

const MAX_BODY_BYTES = 65_536;
const MAX_CHARACTERS = 300;

/**
 * The service's message of an error body (interface 2.5), as one printable line of bounded length.
 * The body is always read to its end or given up, so that its connection is free again.
 * @param secrets values that are blotted out should the service repeat them
 * @returns undefined where the body is none of the interface's
 */
export async function readGermanText(
  response: Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>,
  secrets: readonly string[],
): Promise<string | undefined> {
  const json = await readJson(response, { maxBytes: MAX_BODY_BYTES }).catch(() => undefined); // the status says enough
  const parsed = errorBodySchema.safeParse(json?.value);
  if (!parsed.success) return undefined;
  const text = secrets.reduce((redacted, secret) => redacted.replaceAll(secret, '[redacted]'), parsed.data.error);
  return oneLine(text) || undefined;
}

function oneLine(text: string): string {
  const characters = [...text.replaceAll(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()];
  return characters.length > MAX_CHARACTERS
    ? `${characters.slice(0, MAX_CHARACTERS - 1).join('')}…`
    : characters.join('');
}
