import type { SkippableValues } from '../core/json/skip-large-values.js';
import { INTERFACE_FIELDS, OPTIONAL_FIELDS } from '../core/run-fields.js';

/** Fields of any length that no decision about an entry depends on. */
const LONG: readonly string[] = [
  'fileName',
  'rawOcrResult',
  ...OPTIONAL_FIELDS.filter(({ type }) => type === 'object' || type === 'long text').map(({ field }) => field),
];
/** Fields that decide how an entry is processed (interface 2.1). */
const STEERING: ReadonlySet<string> = new Set(INTERFACE_FIELDS.filter((name) => !LONG.includes(name)));
/** Maximum length of a `nextCursor` that is read, bytes of JSON. A longer one could not be sent back, however it is escaped. */
const CURSOR_BYTES = 64 * 1024;

/** Values of a large page, `{"items":[{…}],"nextCursor":"…"}`, that can be skipped. */
export const SKIPPABLE_IN_PAGE: SkippableValues = {
  depth: 3,
  entries: 'items',
  isSkippable: ({ depth, name, bytes }) =>
    depth === 1 ? name === 'nextCursor' && bytes > CURSOR_BYTES : depth === 3 && !STEERING.has(name),
};
/** Values of a large single run that can be skipped. */
export const SKIPPABLE_IN_RUN: SkippableValues = { depth: 1, isSkippable: ({ name }) => !STEERING.has(name) };
