import { isLoopback } from '../core/loopback.js';
import { requireArgument } from './check-arguments.js';

/**
 * Parses the URL of the service. Plain HTTP would send the key unencrypted, so it must not leave the machine. The URL must not contain a user or password, which would compete with the bearer key and appear
 * in messages, nor a query or fragment, which requests replace.
 * @throws InvalidArgumentError without the URL
 */
export function parseBaseUrl(baseUrl: string | URL, { allowHttp }: { readonly allowHttp: boolean }): URL {
  const url = URL.canParse(String(baseUrl)) ? new URL(baseUrl) : null;
  const isHttp = url?.protocol === 'http:';
  const isUrl = url !== null && (isHttp || url.protocol === 'https:');
  requireArgument(isUrl, 'baseUrl must be an http or https URL, such as https://recognition.example/v1');
  const isPrivate = !isHttp || isLoopback(url) || allowHttp;
  requireArgument(isPrivate, 'http: would send the key unencrypted; use https:, or allow it with allowHttp');
  requireArgument(url.username + url.password === '', 'baseUrl must not contain a user or password');
  requireArgument(url.search + url.hash === '', 'baseUrl must end with its path, without query or fragment');
  return url;
}
