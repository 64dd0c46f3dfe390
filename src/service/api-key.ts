import { ServiceError } from './errors/service-error.js';

/** A bearer key, or a function that returns it. The function is called before every request, so that the key can be rotated. */
export type ApiKeySource = string | (() => string | Promise<string>);

/** Returns whether a key can be sent in a header. */
export function isApiKey(key: unknown): boolean {
  return typeof key === 'string' && /^[\x21-\x7e]+$/.test(key);
}

/**
 * Returns the key to send. Its characters are checked first, because HTTP libraries quote a header that they refuse.
 * @throws ServiceError without the key
 */
export async function currentApiKey(source: ApiKeySource): Promise<string> {
  let key: unknown;
  try {
    key = typeof source === 'function' ? await source() : source;
  } catch (error) {
    const code = (error as { code?: unknown } | null)?.code;
    throw unusable(`could not be read${typeof code === 'string' ? ` (${code})` : ''}; check the file that contains it`);
  }
  if (typeof key !== 'string' || key === '') throw unusable('is empty; set one');
  if (!isApiKey(key))
    throw unusable('contains a character that is not allowed, such as a space or a line break; set it again');
  return key;
}

function unusable(reason: string): ServiceError {
  return new ServiceError('api_key', 'hold', `the API key ${reason}`);
}
