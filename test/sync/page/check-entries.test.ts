import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { elementRanges, memberRanges, textOf } from '../../../src/core/json/ranges.js';
import { RepeatedField } from '../../../src/core/json/skip-large-values.js';
import { batchOf, type CheckedEntry, checkEntries, checkRun } from '../../../src/sync/page/check-entries.js';
import type { RawPage } from '../../../src/sync/ports/index.js';
import { recheckPayload } from '../../../src/sync/results/recheck-payload.js';
import { codePoint } from '../../support/code-points.js';
import { entryJson, pageJson, raw } from '../../support/entries.js';
import { rawPage, rawRun, storedFields, storedTexts, withoutMark } from '../../support/pages.js';
import { cases } from '../../support/thorough.js';

const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
/** The JSON of the fields without a column. */
const extraOf = (entry: CheckedEntry | undefined) => Buffer.concat(entry?.accepted.readExtra?.() ?? []).toString();
const only = <T>(of: readonly T[]) => {
  expect(of).toHaveLength(1);
  return of[0] as T;
};

/** Pieces that JSON is made of, and some that it is not. */
const PIECES = [
  ...['{', '}', '[', ']', ',', ':', '"', '\\', '\\u', '\\"', '\\\\', ' ', '\n', '\t', 'null', '1', '-', '1e9', '0.0'],
  ...['"items"', '"items":[', '"a"', '"it\\u0065ms"', '{"items":[', ']}', '"\\ud800"', '\ufeff', 'ß', '\x80', '\xff'],
];
const pieces = fc.array(fc.constantFrom(...PIECES), { maxLength: 40 }).map((of) => Buffer.from(of.join(''), 'latin1'));

/** A page with some of its bytes changed, taken out or doubled. */
const spoiled = fc
  .tuple(
    fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 4 }),
    fc.constantFrom(undefined, 1, '\t'),
    fc.array(fc.tuple(fc.nat(), fc.nat(2), fc.oneof(fc.nat(255), fc.constantFrom(0x22, 0x5c, 0x2c, 0x5d, 0x7d)))),
  )
  .map(([items, indent, changes]) => {
    let bytes = [...Buffer.from(JSON.stringify({ items, nextCursor: 'n' }, null, indent))];
    for (const [at, removed, added] of changes.slice(0, 3)) {
      const here = at % bytes.length;
      bytes = [...bytes.slice(0, here), added, ...bytes.slice(here + removed)];
    }
    return Buffer.from(bytes);
  });

const sound = fc
  .tuple(fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 4 }), fc.constantFrom(' ', '\n\t', ''), fc.boolean())
  .map(([items, space, mark]) =>
    Buffer.from(
      `${mark ? '\ufeff' : ''}{"items"${space}:[${space}${items.map((item) => JSON.stringify(item)).join(`${space},`)}${space}]}`,
    ),
  );

/** Null if the page has a field twice. */
function rawPageOnce(body: Uint8Array): RawPage | null {
  try {
    return rawPage(body);
  } catch (error) {
    if (error instanceof RepeatedField) return null;
    throw error;
  }
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(decode(body));
  } catch {
    return undefined;
  }
}

it('quarantines an entry when a member that is hidden by a later one of its name is nested too deep', () => {
  const hidden = `{},"x":${'['.repeat(50_000)}${']'.repeat(50_000)},"x":1`;
  const { entries, quarantine } = checkEntries(rawPage(pageJson([entryJson(), entryJson({ data: raw(hidden) })])));
  expect(entries).toHaveLength(1);
  expect(quarantine).toMatchObject([{ reason: 'nesting', state: 'open' }]);
});

describe('a page of arbitrary bytes', () => {
  it('every entry is stored or quarantined with its bytes when JSON.parse accepts it', () => {
    let pages = 0;
    fc.assert(
      fc.property(fc.oneof(pieces, spoiled, sound).map(withoutMark), (body) => {
        const { items } = (parsed(body) ?? {}) as { items?: unknown };
        if (!Array.isArray(items)) return;
        pages += 1;
        const ranges = elementRanges(body, memberRanges(body).get('items')?.start);
        expect(ranges.map((range) => JSON.parse(textOf(body, range)))).toEqual(items);
        const { entries, quarantine } = checkEntries(rawPageOnce(body) ?? rawPage(JSON.stringify({ items })));
        const open = quarantine.filter(({ state }) => state === 'open');
        expect(entries.length + open.length).toBe(items.length);
        for (const { payload } of open) expect(items).toContainEqual(JSON.parse(decode(payload)));
      }),
      { numRuns: cases(400, 5_000) },
    );
    expect(pages).toBeGreaterThan(cases(80, 1_200));
  });

  it('the search ends when JSON.parse rejects it', () => {
    fc.assert(
      fc.property(fc.oneof(pieces, fc.uint8Array({ maxLength: 60 })), (body) => {
        try {
          for (const { start, end } of [...memberRanges(body).values(), ...elementRanges(body)]) {
            expect(start).toBeLessThanOrEqual(end);
          }
        } catch (error) {
          expect(error).toBeInstanceOf(error instanceof SyntaxError ? SyntaxError : RangeError);
        }
      }),
      { numRuns: cases(400, 5_000) },
    );
  });
});

describe('an entry that has a field twice', () => {
  const doubled = (members: string) => `${entryJson({ scanId: 'b', revision: 2 }).slice(0, -1)},${members}}`;

  it.each([
    ['revision', '"revision":5', { scanId: 'b', revision: null }],
    ['scanId', '"scanId":"b"', { scanId: null, revision: 2 }],
    ['partnerTestMode', '"partnerTestMode":false', { scanId: 'b', revision: 2 }],
    ['data', `"data":{"text":"${'x'.repeat(10_000)}"}`, { scanId: 'b', revision: 2 }],
    ['data', '"d\\u0061ta":null', { scanId: 'b', revision: 2 }],
    ['revision, data', '"data":1,"revision":1,"data":2', { scanId: 'b', revision: null }],
  ])('is quarantined, and its neighbours are stored: %s in %s', (names, members, identity) => {
    const others = [entryJson({ scanId: 'a' }), entryJson({ scanId: 'c' })] as const;
    const page = checkEntries(rawPage(pageJson([others[0], doubled(members), others[1]])));
    expect(page.entries.map(({ accepted }) => accepted.run.scanId)).toEqual(['a', 'c']);
    const rejected = { ...identity, reason: 'repeated_field', detail: `repeated: ${names}`, state: 'open' };
    expect(page.quarantine).toMatchObject([rejected]);
    expect(decode(only(page.quarantine).payload)).toBe(doubled(members));
    expect(recheckPayload(only(page.quarantine).payload, false)).toMatchObject({ usable: false, entry: rejected });
  });

  it('is stored when only a field that the interface does not know is repeated', () => {
    const page = checkEntries(rawPage(pageJson([doubled('"x":1,"x":2')])));
    expect(extraOf(only(page.entries))).toBe('{"x":1,"x":2}');
  });
});

describe('entries that are JSON of any kind', () => {
  it('never make the checks throw, and are all stored or quarantined', () => {
    const field = fc.constantFrom(
      'scanId',
      'revision',
      'status',
      'documentType',
      'data',
      'deliveredAt',
      'ocrConfidence',
    );
    const changed = fc.tuple(fc.dictionary(field, fc.jsonValue({ stringUnit: codePoint() })), fc.boolean());
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.jsonValue(), changed), { maxLength: 10 }), (values) => {
        const entries = values.map((of) =>
          Array.isArray(of) && of.length === 2 ? entryJson(Object(of[0])) : JSON.stringify(of),
        );
        const { entries: usable, quarantine } = checkEntries(rawPage(pageJson(entries)));
        const open = quarantine.filter(({ state }) => state === 'open');
        expect(usable.length + open.length).toBe(entries.length);
        for (const { payload } of open) expect(entries).toContain(decode(payload));
      }),
      { numRuns: cases(250, 2_000) },
    );
  });
});

describe('the values that go to PostgreSQL', () => {
  /** The JSON of each entry's fields. */
  const sent = (...entries: readonly string[]) =>
    checkEntries(rawPage(pageJson(entries))).entries.map(({ accepted }) => Object.fromEntries(storedTexts(accepted)));

  it('are the bytes as received', () => {
    const data = '{ "n" : 1e9, "amount":1.10,"t":"e10 \\u00fc" }';
    const entry = entryJson({ data: raw(data), ocrConfidence: raw('0.90'), partnerName: null });
    expect(sent(entry, entryJson({ revision: 2 }))).toEqual([
      expect.objectContaining({ data, ocrConfidence: '0.90', revision: '1' }),
      expect.objectContaining({ revision: '2' }),
    ]);
    expect(sent(entry)[0]).not.toHaveProperty('partnerName');
  });

  it('are those of the list of entries when a page has other lists', () => {
    const page = `{"x":[{"data":2}],"items":[${entryJson({ data: { a: 3 } })}],"y":[{"data":4},{"data":5,"data":6}]}`;
    const [entry] = checkEntries(rawPage(page)).entries;
    expect(entry && storedFields(entry.accepted)).toMatchObject({ data: { a: 3 } });
  });

  it('are as received when another entry is repaired or quarantined', () => {
    const data = '{ "a" : 1.10 }';
    const sound = entryJson({ data: raw(data) });
    expect(sent(sound, entryJson({ revision: 2, error: raw('"\\u0000"') }), 'null')).toEqual([
      expect.objectContaining({ data, revision: '1' }),
      expect.objectContaining({ error: '"\\ufffd"', revision: '2' }),
    ]);
  });

  it.each([
    ['U+0000', '"\\u0000"'],
    ['a large exponent', '1e400000'],
  ])('leave out suspicious values next to the entries: %s', (_what, value) => {
    const page = rawPage(`{"a":${value},"items":[${entryJson()}]}`);
    expect(checkEntries(page)).toMatchObject({
      entries: [{ accepted: { readExtra: null, repaired: false } }],
      quarantine: [],
    });
  });

  it('include unknown fields, and originals of replaced values, as received', () => {
    const entry = entryJson({
      documentType: raw('{"slug":"a","name":"A","n":1.10}'),
      ocrConfidence: 'high',
      submittedAt: '2026-01-02T08:00:31',
      x: raw('[ 2.0 ]'),
    });
    const [checked] = checkEntries(rawPage(pageJson([entry]))).entries;
    expect(extraOf(checked)).toBe('{"ocrConfidence":"high","x":[ 2.0 ],"documentType":{"n":1.10}}');
    expect(checked?.accepted).toMatchObject({ repaired: true });
  });
});

it('keeps no copy of an entry or a single run that it repairs, since the memory budget does not count it', () => {
  const json = entryJson({ error: raw('"\\u0000"'), data: { a: 1 } });
  const page = rawPage(pageJson([json]));
  const run = rawRun(`{"rawOcrResult":1,${json.slice(1)}`);
  const [entry, result] = [only(checkEntries(page).entries), checkRun(run)];
  expect(entry.accepted.repaired && result?.accepted.repaired).toBe(true);
  expect(entry.accepted.readField('data')?.json.buffer).toBe(page.body.buffer);
  expect(result?.accepted.readField('data')?.json.buffer).toBe(run.body.buffer);
});

describe('unknown fields', () => {
  it('are sent as received, whatever is between them and however their names are written', () => {
    const entry = entryJson({
      documentType: raw('{ "a" : 1 ,"slug":null, "b":2, "c" :3,"\\u0073lug":"s","name":null}'),
    });
    const unknown = '"\\u0061":1 , "__proto__" : {}';
    const page = pageJson([`{ ${unknown},${entry.slice(1, -1)}, "d":[1,2] ,"error":null, "a":2}`]);
    const [checked] = checkEntries(rawPage(page)).entries;
    expect(extraOf(checked)).toBe(`{${unknown},"d":[1,2],"a":2,"documentType":{"a" : 1,"b":2, "c" :3}}`);
  });

  it('are sent in few pieces, since there can be very many', () => {
    const unknown = Array.from({ length: 1_000 }, (_, n) => `"k${n}":0`).join();
    const [checked] = checkEntries(rawPage(pageJson([`${entryJson().slice(0, -1)},${unknown}}`]))).entries;
    expect(checked?.accepted.readExtra?.()).toHaveLength(3);
    expect(extraOf(checked)).toBe(`{${unknown}}`);
  });
});

describe('a result that was loaded for an entry', () => {
  const entryWith = (deliveredAt: unknown) =>
    only(checkEntries(rawPage(pageJson([entryJson({ resultTruncated: true, deliveredAt })]))).entries);
  const resultWith = (over: Record<string, unknown>) => {
    const checked = checkRun(rawRun(entryJson(over)));
    if (checked === null) throw new Error('unusable');
    return checked;
  };

  it('is sent to PostgreSQL after its entry and does not count as a delivery', () => {
    const [entry, result] = [entryWith('2026-01-02T08:00:31Z'), resultWith({ partnerName: 'Muster' })];
    const batch = batchOf([{ ...entry, result }]);
    expect(batch).toEqual([entry.accepted, { ...result.accepted, isAnswer: true }]);
  });

  it('is sent alone when it has a higher revision', () => {
    const result = resultWith({ revision: 2 });
    expect(batchOf([{ ...entryWith('2026-01-02T08:00:31Z'), result }])).toEqual([result.accepted]);
  });

  it('leaves out the raw result, whatever it contains', () => {
    const wild = raw(`[${'['.repeat(5_000)}${']'.repeat(5_000)},1e400000,"\\u0000"]`);
    const checked = resultWith({ rawOcrResult: wild });
    expect(checked.accepted).toMatchObject({ readExtra: null, repaired: false });
  });

  it('is unusable when it exceeds the limits of an entry', () => {
    expect(checkRun(rawRun(entryJson({ data: { n: raw(`[${'1e131071,'.repeat(20)}1]`) } })))).toBeNull();
    expect(checkRun(rawRun(entryJson({ data: raw(`${'{"a":'.repeat(600)}1${'}'.repeat(600)}`) })))).toBeNull();
  });
});
