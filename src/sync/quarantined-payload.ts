import { needsFullResult } from './full-result.js';
import { type DraftEntry, draftPage, withPending } from './page-draft.js';
import type { QuarantineEntry, RawPage } from './ports.js';

/** What the present checks say of an entry that was quarantined. */
export type Rechecked =
  | { readonly usable: true; readonly draft: DraftEntry }
  | { readonly usable: false; readonly entry: QuarantineEntry };

/**
 * Checks an entry again from its bytes, exactly as if a page delivered it now. A truncated one comes back pending: the
 * feed's leader loads its result.
 * @param payload the bytes of one entry, valid JSON (it was parsed when it came)
 */
export function recheckPayload(payload: Uint8Array, markdown: boolean): Rechecked {
  const { entries, quarantine } = draftPage(pageOf(payload));
  const [draft] = entries;
  if (draft !== undefined) {
    const lacking = needsFullResult(draft.accepted.run, markdown);
    return { usable: true, draft: lacking ? withPending(draft, 'not_loaded') : draft };
  }
  const [entry] = quarantine;
  if (entry === undefined) throw new RangeError('the payload is not one entry');
  return { usable: false, entry };
}

/** A page that holds this entry alone. */
function pageOf(payload: Uint8Array): RawPage {
  const body = Buffer.concat([Buffer.from('{"items":['), payload, Buffer.from(']}')]);
  const { items } = JSON.parse(new TextDecoder('utf-8', { ignoreBOM: true }).decode(body)) as {
    items: readonly unknown[];
  };
  return { body, items, emptied: false, nextCursor: null, serviceDate: null };
}
