import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scanMembers } from '../../../src/core/json/scan.js';
import { factsOf } from '../../support/json-facts.js';
import { cases } from '../../support/thorough.js';

interface Member {
  readonly name: string;
  readonly value: unknown;
}

/** Returns the parsed members at a depth; null if the text is not JSON. */
function membersOf(text: string, depth: number): readonly Member[] | null {
  const json = Buffer.from(text);
  const parse = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString());
  const members: Member[] = [];
  try {
    scanMembers(json, depth, (member) => {
      if (member.depth !== depth) return;
      const { name, value } = member;
      members.push({
        name: parse(json.subarray(name.start, name.end)) as string,
        value: parse(json.subarray(value.start, value.end)),
      });
    });
    return members;
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError);
    return null;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the members of all objects at this depth. */
function expectedMembers(value: unknown, depth: number): readonly Member[] {
  if (typeof value !== 'object' || value === null) return [];
  const here =
    depth === 1 && !Array.isArray(value) ? Object.entries(value).map(([name, of]) => ({ name, value: of })) : [];
  return [...here, ...Object.values(value).flatMap((inner) => (depth > 1 ? expectedMembers(inner, depth - 1) : []))];
}

const sorted = (members: readonly Member[]) => members.map((member) => JSON.stringify(member)).sort();

/** Pieces of valid and invalid JSON. */
const PIECES = [
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '\\u',
    '\\"',
    '\\\\',
    ' ',
    '\n',
    '\t',
    '\v',
    'null',
    'nul',
    'true',
    'false',
  ],
  ...[
    '0',
    '1',
    '-',
    '01',
    '1.',
    '.5',
    '1e',
    '1e9',
    '1E+05',
    '-0.0',
    '"a"',
    '"a":1',
    '"\\u00e4"',
    '"\\u00g4"',
    '"\\x"',
    '"\u0001"',
  ],
  ...['{"a":', '[1,2]', '{}', '[]', '"ß"', '\ufeff', '\u2028'],
];

/** Returns the number of values in a value, itself included. */
function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, inner) => sum + countValues(inner), 1);
}

/** Returns the depth of the deepest container of a value. */
function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe('scanning JSON bytes', () => {
  it.each([
    ['"\\u0000"', true],
    ['{"\\uD83d":1}', true],
    ['"a\\uDe00"', true],
    ['"\\u00e4\\ud7ff\\ue000\\n"', false],
    ['"\\\\u0000"', false],
  ])('tells whether there are escapes of U+0000 or surrogates: %s', (json, expected) => {
    expect(factsOf(Buffer.from(json)).hasSpecialEscapes).toBe(expected);
  });

  it('counts the values of each member when it scans any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.integer({ min: 0, max: 4 }), (value, depth) => {
        const json = Buffer.from(JSON.stringify(value));
        const all = scanMembers(json, depth, (member) => {
          const of: unknown = JSON.parse(json.subarray(member.value.start, member.value.end).toString());
          expect(member).toMatchObject({ values: countValues(of) });
        });
        expect(all.values).toBe(countValues(JSON.parse(json.toString())));
        expect(all.depth).toBe(depthOf(value));
      }),
      { numRuns: cases(250, 2_000) },
    );
  });

  it('reports every member of a depth when it scans any JSON', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 5 }),
        fc.integer({ min: 1, max: 4 }),
        fc.constantFrom(0, 1),
        (value, depth, indent) => {
          const members = membersOf(JSON.stringify(value, null, indent), depth);
          expect(sorted(members ?? [])).toEqual(sorted(expectedMembers(value, depth)));
        },
      ),
      { numRuns: cases(250, 2_000) },
    );
  });

  it('accepts a text exactly when JSON.parse accepts it', () => {
    let accepted = 0;
    const text = fc.oneof(
      fc.array(fc.constantFrom(...PIECES), { maxLength: 8 }).map((of) => of.join('')),
      fc.tuple(fc.jsonValue({ maxDepth: 3 }), fc.nat(), fc.constantFrom(...PIECES, '')).map(([value, at, piece]) => {
        const valid = JSON.stringify(value);
        const place = at % (valid.length + 1);
        return valid.slice(0, place) + piece + valid.slice(place + (at % 2));
      }),
    );
    fc.assert(
      fc.property(text, (json) => {
        // UTF-8 has no lone surrogates.
        fc.pre(json.isWellFormed());
        const valid = isJson(json);
        if (valid) accepted += 1;
        expect(membersOf(json, 1) !== null).toBe(valid);
      }),
      { numRuns: cases(800, 20_000) },
    );
    expect(accepted).toBeGreaterThan(cases(40, 2_000));
  });

  it('throws when the text is cut at any byte', () => {
    const json = '{"items":[{"scanId":"s\\u00e4","data":{"a":[1.5e3,true,null,""]}}],"nextCursor":"c"}';
    for (let end = 0; end < json.length; end += 1) expect(membersOf(json.slice(0, end), 1)).toBeNull();
    expect(membersOf(json, 1)).toHaveLength(2);
  });

  it('scans a text when it is a million levels deep', () => {
    const depth = 1_000_000;
    expect(membersOf(`${'[{"a":'.repeat(depth)}1${'}]'.repeat(depth)}`, 0)).toEqual([]);
  });
});
