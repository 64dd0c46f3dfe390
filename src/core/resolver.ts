/**
 * Time after which the next address of a name is tried, milliseconds. Node's 250 ms end a handshake over a long line; this allows
 * one lost packet (its repetition follows after 1 s).
 */
export const ATTEMPT_TIMEOUT_MS = 2_000;
