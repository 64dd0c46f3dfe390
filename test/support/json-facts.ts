import { type JsonFacts, scanMembers } from '../../src/core/json/scan.js';

/**
 * Returns the facts that a scan collects about a whole JSON text.
 * @throws JsonSyntaxError
 */
export function factsOf(json: Uint8Array): JsonFacts {
  return scanMembers(json, 0, () => {});
}
