import { isUtf8 } from 'node:buffer';

/* Repairs JSON that PostgreSQL cannot store. Works on the bytes, so that no other value changes. */

/**
 * Returns JSON that PostgreSQL can store: U+FFFD replaces U+0000, surrogates without their other half, and invalid UTF-8. If
 * there is nothing to repair, it returns the same bytes. It makes at most one copy of them, plus one in parts.
 */
export function repairJson(json: Uint8Array): Uint8Array {
  const text = isUtf8(json) ? json : wellFormed(json);
  let repaired: Uint8Array | null = null;
  for (let at = text.indexOf(BACKSLASH); at !== -1; ) {
    const found = escapeAt(text, at);
    if (!found.storable) {
      repaired ??= Uint8Array.prototype.slice.call(text);
      repaired.set(REPLACEMENT, at + 2);
    }
    at = text.indexOf(BACKSLASH, at + found.length);
  }
  return repaired ?? text;
}

/** Returns whether PostgreSQL can store this JSON without repair. Makes no copy. */
export function isStorableJson(json: Uint8Array): boolean {
  if (!isUtf8(json)) return false;
  for (let at = json.indexOf(BACKSLASH); at !== -1; ) {
    const found = escapeAt(json, at);
    if (!found.storable) return false;
    at = json.indexOf(BACKSLASH, at + found.length);
  }
  return true;
}

/** The digits of the escape of U+FFFD, which is as long as any other. */
const REPLACEMENT = Buffer.from('fffd');
const BACKSLASH = 0x5c;
const U = 0x75;
/** An escape of four digits, and a pair of them. */
const ESCAPE_BYTES = 6;

/** Reads one escape; a pair of surrogates counts as one. Reading in order keeps an escaped backslash before a `u` apart. */
function escapeAt(json: Uint8Array, at: number): { readonly length: number; readonly storable: boolean } {
  const unit = codeUnitAt(json, at);
  if (unit === null) return { length: 2, storable: true };
  const following = isHighSurrogate(unit) ? codeUnitAt(json, at + ESCAPE_BYTES) : null;
  if (following !== null && isLowSurrogate(following)) return { length: 2 * ESCAPE_BYTES, storable: true };
  return { length: ESCAPE_BYTES, storable: unit !== 0 && !isHighSurrogate(unit) && !isLowSurrogate(unit) };
}

/** Returns the code unit of the escape at `at`; null if it is not one of four digits. */
function codeUnitAt(json: Uint8Array, at: number): number | null {
  if (json[at] !== BACKSLASH || json[at + 1] !== U) return null;
  return Number.parseInt(String.fromCharCode(...json.subarray(at + 2, at + ESCAPE_BYTES)), 16);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Size of the parts that are decoded at once, bytes. */
const PIECE_BYTES = 1024 * 1024;

function wellFormed(bytes: Uint8Array): Uint8Array {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    parts.push(Buffer.from(decoder.decode(bytes.subarray(at, at + PIECE_BYTES), { stream: true })));
  }
  return Buffer.concat([...parts, Buffer.from(decoder.decode())]);
}

/** Returns whether PostgreSQL can store this string as text. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Repairs a string like JSON. */
function repairText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}

/** Returns whether a string, once repaired, has at most this many UTF-8 bytes. */
export function fitsIn(text: string, bytes: number): boolean {
  if (text.length * 3 <= bytes) return true;
  return text.length <= bytes && Buffer.byteLength(repairText(text)) <= bytes;
}
