import { allMembers } from '../../core/json/ranges.js';
import { DOCUMENT_TYPE_FIELDS, INTERFACE_FIELDS, type InterfaceField } from '../../core/run-fields.js';

/** JSON, in pieces that are slices of the received bytes. */
type Pieces = readonly Uint8Array[];

/**
 * Returns a JSON object of the fields of an entry that have no column, also of those of its `documentType`. Null: none.
 * @param entry its JSON, storable
 * @param kept fields with a column whose original is kept as well
 */
export function extraFields(entry: Uint8Array, kept: readonly InterfaceField[]): Pieces | null {
  const fields = otherMembers(
    entry,
    INTERFACE_FIELDS.filter((name) => !kept.includes(name)),
  );
  const type = new Map(allMembers(entry)).get('documentType');
  const ofType = type === undefined ? [] : otherMembers(entry.subarray(type.start, type.end), DOCUMENT_TYPE_FIELDS);
  const members = ofType.length === 0 ? fields : [...fields, member('documentType', objectOf(ofType))];
  return members.length === 0 ? null : objectOf(members);
}

/** Returns the members of an object, except for those with these names. */
function otherMembers(json: Uint8Array, names: readonly string[]): readonly Pieces[] {
  return allMembers(json).flatMap(([name, { start, end }]) =>
    names.includes(name) ? [] : [member(name, [json.subarray(start, end)])],
  );
}

function member(name: string, value: Pieces): Pieces {
  return [Buffer.from(`${JSON.stringify(name)}:`), ...value];
}

function objectOf(members: readonly Pieces[]): Pieces {
  return [OPEN, ...members.flatMap((each, index) => (index === 0 ? each : [SEPARATOR, ...each])), CLOSE];
}

const [OPEN, SEPARATOR, CLOSE] = ['{', ',', '}'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];
