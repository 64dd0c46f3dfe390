import { ApiKeyError } from './errors/request-errors.js';

/** A bearer key, or a function that returns it. The function is called before every request, so that the key can be rotated. */
export type ApiKeySource = string | (() => string | Promise<string>);

/** Returns whether a key can be sent in a header. */
export function isApiKey(key: unknown): boolean {
  return typeof key === 'string' && /^[\x21-\x7e]+$/.test(key);
}

/**
 * Returns the key to send. Its characters are checked first, because HTTP libraries quote a header that they refuse.
 * @throws ApiKeyError without the key
 */
export async function currentApiKey(source: ApiKeySource): Promise<string> {
  let key: unknown;
  try {
    key = typeof source === 'function' ? await source() : source;
  } catch (error) {
    const code = (error as { code?: unknown } | null)?.code;
    throw new ApiKeyError(
      `the API key could not be read${typeof code === 'string' ? ` (${code})` : ''}; check the file that contains it`,
    );
  }
  if (typeof key !== 'string' || key === '') throw new ApiKeyError('the API key is empty; set one');
  if (!isApiKey(key)) {
    throw new ApiKeyError(
      'the API key contains a character that is not allowed, such as a space or a line break; set it again',
    );
  }
  return key;
}
