import { bytesOf, sliceOf } from '../../core/json/ranges.js';
import type { Slice } from '../../core/json/scan.js';

/** Bytes, possibly in pieces. */
export type Bytes = Slice | readonly Uint8Array[];

/** The length of SQL's null. */
export const NULL = -1;
/** Sizes of the buffers that values are copied to, bytes: each has twice the size of the one before. */
const FIRST_CHUNK_BYTES = 1024;
const MAX_CHUNK_BYTES = 64 * 1024;
/** Maximum length of bytes that are copied. Longer ones are sent from where they are, so they are in memory only once. */
const COPIED_BYTES = 8 * 1024;
/** Maximum length of bytes that are copied one by one, which is faster than a call for a few. */
const FEW_BYTES = 40;

export type Writer = ReturnType<typeof createWriter>;

/** Collects bytes: short ones in chunks, long ones as they are. */
export function createWriter() {
  const pieces: Uint8Array[] = [];
  let chunk = Buffer.allocUnsafe(FIRST_CHUNK_BYTES);
  let begin = 0;
  let end = 0;

  const flush = () => {
    if (end > begin) pieces.push(chunk.subarray(begin, end));
    begin = end;
  };
  /** Makes space for bytes that are copied. */
  const reserve = (bytes: number) => {
    if (end + bytes <= chunk.length) return;
    flush();
    chunk = Buffer.allocUnsafe(Math.max(Math.min(2 * chunk.length, MAX_CHUNK_BYTES), bytes));
    begin = 0;
    end = 0;
  };
  const int32 = (value: number) => {
    reserve(4);
    end = chunk.writeInt32BE(value, end);
  };
  const int16 = (value: number) => {
    reserve(2);
    end = chunk.writeInt16BE(value, end);
  };
  const byte = (value: number) => {
    reserve(1);
    chunk[end++] = value;
  };
  const slice = (value: Slice) => {
    const { json, start } = value;
    const length = value.end - start;
    if (length > COPIED_BYTES) {
      flush();
      pieces.push(bytesOf(value));
      return;
    }
    reserve(length);
    if (length > FEW_BYTES) chunk.set(bytesOf(value), end);
    else for (let index = 0; index < length; index += 1) chunk[end + index] = json[start + index] as number;
    end += length;
  };
  const bytes = (value: Bytes) => {
    if ('json' in value) slice(value);
    else for (const piece of value) slice(sliceOf(piece));
  };
  /** Writes a text after its length. */
  const text = (value: string) => {
    if (value.length > COPIED_BYTES) {
      const encoded = Buffer.from(value);
      int32(encoded.length);
      slice(sliceOf(encoded));
      return;
    }
    reserve(4 + 3 * value.length);
    const length = chunk.write(value, end + 4);
    end = chunk.writeInt32BE(length, end) + length;
  };
  return {
    int32,
    int16,
    byte,
    bytes,
    text,
    pieces: () => {
      flush();
      return pieces;
    },
  };
}
