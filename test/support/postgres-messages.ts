import type { CutPoint, Side } from './tcp-proxy.js';

/** A message of PostgreSQL's protocol 3, as it passed. Offsets count the bytes of its side from the connection's start. */
export interface Message {
  /** The type byte, such as `P` (Parse) or `Z` (ReadyForQuery); the client's first message has none: `startup`. */
  readonly type: string;
  readonly from: Side;
  readonly start: number;
  readonly end: number;
}

/**
 * Finds the messages of an unencrypted connection, which has no message before the startup. The reader takes each chunk and
 * returns the messages whose header it completes.
 */
export function messageReader(): (from: Side, bytes: Buffer) => readonly Message[] {
  const sides = { client: newSide(true), server: newSide(false) };
  return (from, bytes) => {
    const side = sides[from];
    side.held = Buffer.concat([side.held, bytes]);
    const found: Message[] = [];
    for (;;) {
      // The length counts itself, not the type byte.
      const typeBytes = side.first ? 0 : 1;
      const at = side.next - side.heldFrom;
      if (at + typeBytes + 4 > side.held.length) break;
      const end = side.next + typeBytes + side.held.readInt32BE(at + typeBytes);
      const type = side.first ? 'startup' : String.fromCharCode(side.held[at] as number);
      found.push({ type, from, start: side.next, end });
      side.first = false;
      side.next = end;
    }
    const done = Math.min(side.next - side.heldFrom, side.held.length);
    side.held = side.held.subarray(done);
    side.heldFrom += done;
    return found;
  };
}

interface SideState {
  first: boolean;
  /** Where the next message starts. */
  next: number;
  held: Buffer;
  heldFrom: number;
}

const newSide = (first: boolean): SideState => ({ first, next: 0, held: Buffer.alloc(0), heldFrom: 0 });

/** `whole`: after the message. `half`: in the middle of it. */
export type MessagePart = 'whole' | 'half';

/**
 * The point at the nth message of a connection, from either side, from 1; 0 cuts before the first byte.
 * @param onCut called with the message that was cut
 */
export function atMessage(n: number, part: MessagePart, onCut: (message: Message | null) => void): CutPoint {
  const read = messageReader();
  const seen = { client: 0, server: 0 };
  let count = 0;
  let target: Message | null = null;
  return (from, bytes) => {
    const chunkStart = seen[from];
    seen[from] += bytes.length;
    if (n === 0) {
      onCut(null);
      return 0;
    }
    for (const message of read(from, bytes)) {
      count += 1;
      if (count === n) target = message;
    }
    if (target === null || target.from !== from) return null;
    const at = part === 'whole' ? target.end : Math.floor((target.start + target.end) / 2);
    if (at > seen[from]) return null;
    onCut(target);
    return Math.max(0, at - chunkStart);
  };
}
