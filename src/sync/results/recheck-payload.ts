import { parseSkippingLargeValues } from '../../core/json/skip-large-values.js';
import { type CheckedEntry, checkEntries, withPending } from '../page/check-entries.js';
import type { QuarantineEntry, RawPage } from '../ports/index.js';
import { needsFullResult } from './full-result.js';

/** The result of checking a quarantined entry again. */
export type Rechecked =
  | { readonly usable: true; readonly entry: CheckedEntry }
  | { readonly usable: false; readonly entry: QuarantineEntry };

/**
 * Checks an entry again from its bytes, exactly as if a page delivered it now. A truncated one is returned as pending: the
 * feed's leader loads its result.
 * @param payload the bytes of one entry, valid JSON (it was parsed when it was received)
 */
export function recheckPayload(payload: Uint8Array, markdown: boolean): Rechecked {
  const { entries, quarantine } = checkEntries(pageOf(payload));
  const [entry] = entries;
  if (entry !== undefined) {
    const lacking = needsFullResult(entry.accepted.run, markdown);
    return { usable: true, entry: lacking ? withPending(entry, 'not_loaded') : entry };
  }
  const [rejected] = quarantine;
  if (rejected === undefined) throw new RangeError('the payload is not one entry');
  return { usable: false, entry: rejected };
}

/** A page that holds this entry alone. */
function pageOf(payload: Uint8Array): RawPage {
  const body = Buffer.concat([Buffer.from('{"items":['), payload, Buffer.from(']}')]);
  const { value, ...found } = parseSkippingLargeValues(body, NOTHING_SKIPPED);
  const { items } = value as { readonly items: readonly unknown[] };
  return { body, items, ...found, nextCursor: null, serviceDate: null };
}

const NOTHING_SKIPPED = { depth: 3, entries: 'items', isSkippable: () => false };
