import { bytesOf, nameOf } from '../../core/json/ranges.js';
import { type Range, type Slice, scanMembers } from '../../core/json/scan.js';
import { INTERFACE_FIELDS, type InterfaceField, TYPE_FIELDS } from '../../core/run-fields.js';

/** JSON in pieces, most of them slices of the received bytes. */
type Pieces = readonly Uint8Array[];

/**
 * Returns a JSON object of the fields of an entry that have no column, also of those of its `documentType`.
 * @param entry its JSON
 * @param documentType its last value in the entry
 * @param kept fields with a column whose original is kept as well
 */
export function extraFields(entry: Uint8Array, documentType: Slice | null, kept: readonly InterfaceField[]): Pieces {
  const fields = otherMembers(entry, new Set(INTERFACE_FIELDS.filter((name) => !kept.includes(name))));
  const ofType = documentType === null ? [] : otherMembers(bytesOf(documentType), TYPE_FIELDS);
  return objectOf(ofType.length === 0 ? fields : [...fields, [TYPE_NAME, ...objectOf(ofType)]]);
}

/**
 * Returns the members of an object, except for those with these names. Neighbours are one piece: an entry may have 100,000
 * members that the interface does not know.
 */
function otherMembers(json: Uint8Array, names: ReadonlySet<string>): readonly Pieces[] {
  const others: { start: number; end: number }[] = [];
  let last: { start: number; end: number } | undefined;
  scanMembers(json, 1, ({ name, value }) => {
    if (names.has(nameOf(json, name))) last = undefined;
    else if (last !== undefined) last.end = value.end;
    else {
      last = { start: name.start, end: value.end };
      others.push(last);
    }
  });
  return others.map(({ start, end }: Range) => [json.subarray(start, end)]);
}

function objectOf(members: readonly Pieces[]): Pieces {
  return [OPEN, ...members.flatMap((each, index) => (index === 0 ? each : [SEPARATOR, ...each])), CLOSE];
}

const [OPEN, SEPARATOR, CLOSE, TYPE_NAME] = ['{', ',', '}', '"documentType":'].map((text) => Buffer.from(text)) as [
  Buffer,
  Buffer,
  Buffer,
  Buffer,
];
