/** Returns whether a call, such as of a parser, returns instead of throwing. */
export function succeeds(call: () => unknown): boolean {
  try {
    call();
    return true;
  } catch {
    return false;
  }
}
