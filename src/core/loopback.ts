const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|(.+\.)localhost)$/;

/** Returns whether plain HTTP to this URL stays on the machine. */
export function isLoopback(url: URL): boolean {
  return LOOPBACK.test(url.hostname);
}
