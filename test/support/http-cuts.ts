import type { CutPoint } from './tcp-proxy.js';

/** Positions in an HTTP/1.1 response at which its connection is cut. */
export const RESPONSE_POSITIONS = [
  'before the head',
  'within the head',
  'after the head',
  'within the body',
  'before its end',
] as const;
export type ResponsePosition = (typeof RESPONSE_POSITIONS)[number];

/** Returns a point in the response to the first request whose request line matches. Requests must not be pipelined. */
export function inResponseTo(request: RegExp, position: ResponsePosition): CutPoint {
  let response: Buffer | null = null;
  return (from, bytes) => {
    if (from === 'client') {
      if (response === null && request.test(bytes.toString('latin1'))) response = Buffer.alloc(0);
      return null;
    }
    if (response === null) return null;
    const before = response.length;
    response = Buffer.concat([response, bytes]);
    const at = offsetOf(position, response);
    return at === null ? null : at - before;
  };
}

/** Returns the offset of a position in the response received so far; null if it has not arrived yet. */
function offsetOf(position: ResponsePosition, response: Buffer): number | null {
  if (position === 'before the head') return 0;
  if (position === 'within the head') return within(response, 20);
  const head = response.indexOf('\r\n\r\n');
  if (head === -1) return null;
  const body = head + 4;
  if (position === 'after the head') return body;
  const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(response.toString('latin1', 0, body)) ?? [];
  if (position === 'within the body')
    return within(response, body + (length === undefined ? 100 : Math.floor(Number(length) / 2)));
  if (length !== undefined) return within(response, body + Number(length) - 1);
  const lastChunk = response.indexOf('\r\n0\r\n\r\n', head);
  return lastChunk === -1 ? null : lastChunk + 2;
}

const within = (response: Buffer, at: number) => (response.length >= at ? at : null);
