import { LongParameter } from './long-parameter.js';

/** An element of an array: a text, its bytes, or the pieces of its bytes. Null: SQL's null. */
export type ArrayElement = string | Uint8Array | readonly Uint8Array[] | null;

/** Types of elements by their object identifiers, which are the same on every server (pg_type.dat). */
const OID = { text: 25, jsonb: 3802, integer: 23, boolean: 16 } as const;
/** First byte of PostgreSQL's binary form of `jsonb`, its version; the JSON text follows. */
const JSONB_VERSION = Buffer.of(1);
/** Sizes of the buffers that elements are copied to, bytes: each has twice the size of the one before. */
const FIRST_CHUNK_BYTES = 1024;
const MAX_CHUNK_BYTES = 64 * 1024;
/** Maximum length of bytes that are copied. Longer ones are sent from where they are, so they are in memory only once. */
const COPIED_BYTES = 8 * 1024;

/** Returns an array of texts as a parameter, one for each item. */
export function textArray<Item>(items: readonly Item[], read: (item: Item) => ArrayElement): LongParameter {
  return arrayOf(OID.text, items, (item, writer) => writer.element(read(item)));
}

/** Returns an array of JSON texts as a parameter, one for each item. They never become strings, so no digit is lost. */
export function jsonbArray<Item>(
  items: readonly Item[],
  read: (item: Item) => Uint8Array | readonly Uint8Array[] | null,
): LongParameter {
  return arrayOf(OID.jsonb, items, (item, writer) => {
    const json = read(item);
    if (json === null) writer.element(null);
    else writer.element([JSONB_VERSION, ...(json instanceof Uint8Array ? [json] : json)]);
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
    writer.element(flag === null ? null : flag ? TRUE : FALSE);
  });
}

const [FALSE, TRUE] = [Buffer.of(0), Buffer.of(1)];

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
  const bytes = (value: Uint8Array) => {
    if (value.length > COPIED_BYTES) {
      flush();
      pieces.push(value);
      return;
    }
    reserve(value.length);
    chunk.set(value, end);
    end += value.length;
  };
  /** @param value a short one */
  const text = (value: string) => {
    reserve(4 + 3 * value.length);
    const length = chunk.write(value, end + 4);
    end = chunk.writeInt32BE(length, end) + length;
  };
  const element = (value: ArrayElement) => {
    if (value === null) int32(-1);
    else if (typeof value === 'string' && value.length <= COPIED_BYTES) text(value);
    else if (typeof value === 'string') element(Buffer.from(value));
    else if (value instanceof Uint8Array) {
      int32(value.length);
      bytes(value);
    } else {
      int32(value.reduce((sum, piece) => sum + piece.length, 0));
      for (const piece of value) bytes(piece);
    }
  };
  return {
    int32,
    element,
    pieces: () => {
      flush();
      return pieces;
    },
  };
}
