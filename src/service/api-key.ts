import { ApiKeyError } from './errors/request-errors.js';

/** A bearer key, or where to get it; asked before every request, so that it can be rotated. */
export type ApiKeySource = string | (() => string | Promise<string>);

/**
 * The key to send now. Its characters are checked first, since HTTP libraries show a header they refuse.
 * @throws ApiKeyError which does not show the key
 */
export async function currentApiKey(source: ApiKeySource): Promise<string> {
  let key: unknown;
  try {
    key = typeof source === 'string' ? source : await source();
  } catch (error) {
    const code = (error as { code?: unknown } | null)?.code;
    throw new ApiKeyError(
      `the API key could not be read${typeof code === 'string' ? ` (${code})` : ''}; check the file that it is read from`,
    );
  }
  if (typeof key !== 'string' || key === '') throw new ApiKeyError('the API key is empty; set one');
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new ApiKeyError(
      'the API key holds a character that no key can hold, such as a space or a line end; set it anew',
    );
  }
  return key;
}
