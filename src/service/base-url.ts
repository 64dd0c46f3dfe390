import { isLoopback } from '../core/loopback.js';
import { InvalidArgumentError } from './errors/request-errors.js';

/**
 * Parses the URL of the service. Plain HTTP would send the key unencrypted, so it must not leave the machine. The URL must not contain a user or password, which would compete with the bearer key and appear
 * in messages, nor a query or fragment, which requests replace.
 * @throws InvalidArgumentError without the URL
 */
export function parseBaseUrl(baseUrl: string | URL, { allowHttp }: { readonly allowHttp: boolean }): URL {
  const url = URL.canParse(String(baseUrl)) ? new URL(baseUrl) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new InvalidArgumentError('baseUrl must be an http or https URL, such as https://recognition.example/v1');
  }
  if (url.protocol === 'http:' && !isLoopback(url) && !allowHttp) {
    throw new InvalidArgumentError('http: would send the key unencrypted; use https:, or allow it with allowHttp');
  }
  if (url.username !== '' || url.password !== '') {
    throw new InvalidArgumentError('baseUrl must not contain a user or password');
  }
  if (url.search !== '' || url.hash !== '') {
    throw new InvalidArgumentError('baseUrl must end with its path, without query or fragment');
  }
  return url;
}
