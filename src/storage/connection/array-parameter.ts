import { type Bytes, createWriter, NULL, type Writer } from './binary-writer.js';
import { LongParameter } from './long-parameter.js';

/** An element of an array: a text, or its bytes. Null: SQL's null. */
export type ArrayElement = string | Bytes | null;

/** Types of elements by their object identifiers, which are the same on every server (pg_type.dat). */
const OID = { text: 25, jsonb: 3802, integer: 23, boolean: 16 } as const;
/** First byte of PostgreSQL's binary form of `jsonb`, its version; the JSON text follows. */
const JSONB_VERSION = 1;

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
