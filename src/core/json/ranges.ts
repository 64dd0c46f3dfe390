import { type Range, type Slice, scanMembers, valueEnd } from './scan.js';
import { afterSpace, JSON_BYTES } from './tokens.js';

/*
 * Finds values in JSON bytes without changing them: the entries of a page and the full result of a run are passed on as
 * received, never serialized again.
 */

const { COMMA, OPEN_ARRAY, CLOSE_ARRAY } = JSON_BYTES;

/** Returns the members of a JSON object. If a key is repeated, the last one counts, as in JSON.parse. */
export function memberRanges(json: Uint8Array): ReadonlyMap<string, Range> {
  const members = new Map<string, Range>();
  scanMembers(json, 1, ({ name, value }) => members.set(JSON.parse(textOf(json, name)) as string, { ...value }));
  return members;
}

/** Returns the elements of the array that starts at `at`. */
export function elementRanges(json: Uint8Array, at = 0): readonly Range[] {
  const elements: Range[] = [];
  let position = afterSpace(json, at);
  if (json[position] !== OPEN_ARRAY) return elements;
  position = afterSpace(json, position + 1);
  while (position < json.length && json[position] !== CLOSE_ARRAY) {
    const end = valueEnd(json, position);
    elements.push({ start: position, end });
    position = afterSpace(json, end);
    if (json[position] !== COMMA) break;
    position = afterSpace(json, position + 1);
  }
  return elements;
}

export function bytesOf({ json, start, end }: Slice): Uint8Array {
  return json.subarray(start, end);
}

export function sliceOf(json: Uint8Array): Slice {
  return { json, start: 0, end: json.length };
}

const { BACKSLASH } = JSON_BYTES;

/** A text without escapes has the same bytes as its JSON. */
export function hasEscapes(json: Uint8Array, { start, end }: Range): boolean {
  for (let at = start; at < end; at += 1) if (json[at] === BACKSLASH) return true;
  return false;
}

/** Maximum length of a name that is decoded, bytes: the longest known name with all its characters escaped. */
const MAX_NAME_BYTES = 128;

/** Returns the name of a member; some other text if it is none of the known names, which are ASCII. */
export function nameOf(json: Uint8Array, { start, end }: Range): string {
  if (end - start > MAX_NAME_BYTES) return ''; // decoding it could take much memory
  const written = Buffer.prototype.latin1Slice.call(json, start, end);
  return written.includes('\\') ? (JSON.parse(written) as string) : written.slice(1, -1);
}

/** Decodes a range, or all bytes; invalid UTF-8 becomes U+FFFD. */
export function textOf(json: Uint8Array, { start, end }: Range = { start: 0, end: json.length }): string {
  return DECODER.decode(json.subarray(start, end));
}
/** One decoder for all texts: each takes memory outside the heap, and one body can have a million names. */
const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
