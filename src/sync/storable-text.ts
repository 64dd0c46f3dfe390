/** Repairs JSON text that PostgreSQL cannot hold, on the text itself, so that no other value is touched. */

/** A quick look that may raise a false alarm, never miss one: an escape of U+0000 or of a surrogate. */
const SUSPECT = /\\u(?:0000|[dD][89a-fA-F])/;

/** Every escape in turn (so that an escaped backslash before a `u` is not misread), pairs of surrogates first. */
const ESCAPE = /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u([0-9a-fA-F]{4})|\\[^u]/g;

/** Whether {@link repairText} may have something to do. */
export function mayNeedRepair(json: string): boolean {
  return SUSPECT.test(json);
}

/** Valid JSON text with U+FFFD in place of U+0000 and of surrogates without their other half; else the same string. */
export function repairText(json: string): string {
  if (!mayNeedRepair(json)) return json;
  return json.replace(ESCAPE, (found: string, code: string | undefined) =>
    code !== undefined && unstorable(code) ? '\\ufffd' : found,
  );
}

function unstorable(code: string): boolean {
  return code === '0000' || /^[dD][89a-fA-F]/.test(code);
}

/** Whether PostgreSQL can hold this string as text. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Whether a string, repaired, has at most this many bytes of UTF-8. */
export function fitsIn(text: string, bytes: number): boolean {
  if (text.length * 3 <= bytes) return true;
  return text.length <= bytes && Buffer.byteLength(text.replaceAll('\0', '\ufffd')) <= bytes;
}
