import { bytesOf, sliceOf } from '../../core/json/ranges.js';
import type { Slice } from '../../core/json/scan.js';
import { LongParameter } from './long-parameter.js';

/** Bytes, possibly in pieces. */
type Bytes = Slice | readonly Uint8Array[];
/** An element of an array: a text, or its bytes. Null: SQL's null. */
export type ArrayElement = string | Bytes | null;

/** Types of elements by their object identifiers, which are the same on every server (pg_type.dat). */
const OID = { text: 25, jsonb: 3802, integer: 23, boolean: 16 } as const;
/** First byte of PostgreSQL's binary form of `jsonb`, its version; the JSON text follows. */
const JSONB_VERSION = 1;
/** The length of SQL's null. */
const NULL = -1;
/** Sizes of the buffers that elements are copied to, bytes: each has twice the size of the one before. */
const FIRST_CHUNK_BYTES = 1024;
const MAX_CHUNK_BYTES = 64 * 1024;
/** Maximum length of bytes that are copied. Longer ones are sent from where they are, so they are in memory only once. */
const COPIED_BYTES = 8 * 1024;
/** Maximum length of bytes that are copied one by one, which is faster than a call for a few. */
const FEW_BYTES = 40;

/** Returns an array of texts as a parameter, one for each item. */
export function textArray<Item>(items: readonly Item[], read: (item: Item) => ArrayElement): LongParameter {
  return arrayOf(OID.text, items, (item, writer) => {
    const text = read(item);
    if (text === null) writer.int32(NULL);
    else if (typeof text === 'string') writer.text(text);
    else {
      writer.int32(lengthOf(text));
      writer.bytes(text);
    }
  });
}

/** Returns an array of JSON texts as a parameter, one for each item. They never become strings, so no digit is lost. */
export function jsonbArray<Item>(items: readonly Item[], read: (item: Item) => Bytes | null): LongParameter {
  return arrayOf(OID.jsonb, items, (item, writer) => {
    const json = read(item);
    if (json === null) return writer.int32(NULL);
    writer.int32(1 + lengthOf(json));
    writer.byte(JSONB_VERSION);
    writer.bytes(json);
  });
}

export function integerArray<Item>(items: readonly Item[], read: (item: Item) => number): LongParameter {
  return arrayOf(OID.integer, items, (item, writer) => {
    writer.int32(4);
    writer.int32(read(item));
  });
}

export function booleanArray<Item>(items: readonly Item[], read: (item: Item) => boolean | null): LongParameter {
  return arrayOf(OID.boolean, items, (item, writer) => {
    const flag = read(item);
    if (flag === null) return writer.int32(NULL);
    writer.int32(1);
    writer.byte(Number(flag));
  });
}

function lengthOf(bytes: Bytes): number {
  return 'json' in bytes ? bytes.end - bytes.start : bytes.reduce((sum, piece) => sum + piece.length, 0);
}

type Writer = ReturnType<typeof createWriter>;

/** Builds PostgreSQL's binary form of an array of one dimension (array_recv in arrayfuncs.c), element by element. */
function arrayOf<Item>(
  type: number,
  items: readonly Item[],
  writeElement: (item: Item, writer: Writer) => void,
): LongParameter {
  const writer = createWriter();
  const dimensions = items.length === 0 ? [] : [items.length, 1]; // the length, and the index of the first element
  for (const number of [dimensions.length / 2, 1, type, ...dimensions]) writer.int32(number);
  for (const item of items) writeElement(item, writer);
  return new LongParameter(writer.pieces());
}

/** Collects bytes: short ones in chunks, long ones as they are. */
function createWriter() {
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
    byte,
    bytes,
    text,
    pieces: () => {
      flush();
      return pieces;
    },
  };
}
