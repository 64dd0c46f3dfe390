import { afterSpace, JSON_BYTES, type Range, scanMembers, valueEnd } from './scan.js';

/*
 * Finds values in JSON bytes without changing them: a page's entries and a run's full result are passed on as they were
 * received, never re-serialised.
 */

const { COMMA, OPEN_ARRAY, CLOSE_ARRAY } = JSON_BYTES;

/** The members of the object that the bytes are. Of equal keys the last, as in JSON.parse. */
export function memberRanges(json: Uint8Array): ReadonlyMap<string, Range> {
  return new Map(allMembers(json));
}

/** Every member of the object that the bytes are, in order, those of equal keys too. */
export function allMembers(json: Uint8Array): readonly (readonly [name: string, value: Range])[] {
  const members: [string, Range][] = [];
  const from = hasByteOrderMark(json) ? 3 : 0;
  scanMembers(json, 1, ({ name, value }) => members.push([JSON.parse(textOf(json, name)) as string, value]), from);
  return members;
}

/** The elements of the array that starts at `at`. */
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

/** The bytes of a range as text; invalid UTF-8 becomes U+FFFD. */
export function textOf(json: Uint8Array, { start, end }: Range): string {
  return DECODER.decode(json.subarray(start, end));
}
/** One for all texts: each keeps memory outside of the heap, and the names in one body can be a million. */
const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });

function hasByteOrderMark(json: Uint8Array): boolean {
  return json[0] === 0xef && json[1] === 0xbb && json[2] === 0xbf;
}
