import type { Lightening } from '../core/json/skip-large-values.js';
import { INTERFACE_FIELDS } from '../core/run-fields.js';

/** Fields that decide nothing about an entry, and may be of any length. */
const LONG: readonly string[] = ['fileName', 'data', 'error', 'markdown', 'rawOcrResult'];
/** What decides about an entry (interface 2.1). */
const STEERING: ReadonlySet<string> = new Set(INTERFACE_FIELDS.filter((name) => !LONG.includes(name)));
/** Longest `nextCursor` that is read, bytes of JSON. A longer one could not be sent back, however it is escaped. */
const CURSOR_BYTES = 64 * 1024;

/** Reads of a large page, `{"items":[{…}],"nextCursor":"…"}`, what steers. */
export const OF_A_PAGE: Lightening = {
  depth: 3,
  entries: 'items',
  isEmptiable: ({ depth, name, bytes }) =>
    depth === 1 ? name === 'nextCursor' && bytes > CURSOR_BYTES : depth === 3 && !STEERING.has(name),
};
/** The same of a single run. */
export const OF_A_RUN: Lightening = { depth: 1, isEmptiable: ({ name }) => !STEERING.has(name) };
