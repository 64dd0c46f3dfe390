import type { SkippableValues } from '../core/json/skip-large-values.js';
import { INTERFACE_FIELDS } from '../core/run-fields.js';

/** Fields that decide nothing about an entry, and may be of any length. */
const LONG: readonly string[] = ['fileName', 'data', 'error', 'markdown', 'rawOcrResult'];
/** What decides about an entry (interface 2.1). */
const STEERING: ReadonlySet<string> = new Set(INTERFACE_FIELDS.filter((name) => !LONG.includes(name)));
/** Longest `nextCursor` that is read, bytes of JSON. A longer one could not be sent back, however it is escaped. */
const CURSOR_BYTES = 64 * 1024;

/** Reads of a large page, `{"items":[{…}],"nextCursor":"…"}`, what steers. */
export const SKIPPABLE_IN_PAGE: SkippableValues = {
  depth: 3,
  entries: 'items',
  isSkippable: ({ depth, name, bytes }) =>
    depth === 1 ? name === 'nextCursor' && bytes > CURSOR_BYTES : depth === 3 && !STEERING.has(name),
};
/** The same of a single run. */
export const SKIPPABLE_IN_RUN: SkippableValues = { depth: 1, isSkippable: ({ name }) => !STEERING.has(name) };
