import type { Range } from './ranges.js';
import { scanMembers } from './scan.js';

/** From this size on a body is parsed lightly: as parsed values it would take some ten times its bytes. */
export const LIGHT_FROM_BYTES = 1024 * 1024;
/** Longer values are left empty. */
const HEAVY_BYTES = 4096;

/** Which values are not needed to steer by. */
export interface Lightening {
  /** How deep the members are that may be left empty: 1 is those of the outermost object. */
  readonly depth: number;
  /** Names of members that are read whatever their size. */
  readonly keep: ReadonlySet<string>;
}

export interface Parsed {
  readonly value: unknown;
  /** Long values were left empty. */
  readonly emptied: boolean;
}

/**
 * What JSON.parse gives, except that of a large text long members hold an empty value of their kind (`{}`, `[]`, `""`).
 * The whole text is checked all the same.
 * @param json UTF-8 without a byte order mark; where it is not valid UTF-8, strings come with U+FFFD
 * @throws SyntaxError
 */
export function parseLight(json: Uint8Array, lightening: Lightening | undefined): Parsed {
  if (lightening === undefined || json.length < LIGHT_FROM_BYTES) return { value: parse(json), emptied: false };
  const heavy = heavyValues(json, lightening);
  return { value: parse(without(json, heavy)), emptied: heavy.length > 0 };
}

function heavyValues(json: Uint8Array, { depth, keep }: Lightening): readonly Range[] {
  const heavy: Range[] = [];
  scanMembers(json, depth, (name, value) => {
    if (value.end - value.start > HEAVY_BYTES && isEmptiable(json, value) && !keep.has(parse(name) as string)) {
      heavy.push(value);
    }
  });
  return heavy;
}

/** An empty number there is none. */
function isEmptiable(json: Uint8Array, { start }: Range): boolean {
  return EMPTY.has(json[start] as number);
}

/** By the first byte of a value. */
const EMPTY: ReadonlyMap<number, Uint8Array> = new Map(
  ['{}', '[]', '""'].map((empty) => [empty.charCodeAt(0), Buffer.from(empty)]),
);

function without(json: Uint8Array, heavy: readonly Range[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const { start, end } of heavy) {
    parts.push(json.subarray(from, start), EMPTY.get(json[start] as number) ?? new Uint8Array());
    from = end;
  }
  return Buffer.concat([...parts, json.subarray(from)]);
}

function parse(json: Uint8Array): unknown {
  return JSON.parse(new TextDecoder('utf-8', { ignoreBOM: true }).decode(json));
}
