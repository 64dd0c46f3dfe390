/** PostgreSQL cuts longer names without an error. In bytes, and characters too: names are ASCII. */
const LONGEST = 63;

const GERMAN: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss' };

/**
 * A key or slug as a part of a name that needs no quotes: `Fälligkeit am` becomes `faelligkeit_am`. Case goes, as it does
 * when PostgreSQL reads a name without quotes. Empty where nothing is left.
 */
export function namePart(text: string): string {
  return text
    .normalize('NFC')
    .toLowerCase()
    .replace(/[äöüß]/g, (letter) => GERMAN[letter] ?? letter)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');
}

/** Name of the view of a document type, or of arrays within its documents. */
export function viewName(slug: string, arrays: readonly (readonly string[])[], taken: ReadonlySet<string>): string {
  const parts = ['document', namePart(slug), ...arrays.flat().map(namePart)];
  return freeName(parts.filter(Boolean).join('_'), '', taken);
}

/** What a column's name must keep away from. */
export interface NameRules {
  /** Columns that every view of this kind has; a field of such a name gets `data_` before it. */
  readonly fixed: ReadonlySet<string>;
  /** Words that would need quotes; a field of such a name gets `_` behind it. */
  readonly reserved: ReadonlySet<string>;
}

/** @param suffix tells a second column for the same field apart, such as `__text`; no key leads to two underscores */
export function columnName(
  path: readonly string[],
  suffix: string,
  taken: ReadonlySet<string>,
  { fixed, reserved }: NameRules,
): string {
  let name = path.map(namePart).filter(Boolean).join('_') || 'field';
  if (/^\d/.test(name)) name = `_${name}`;
  if (fixed.has(name)) name = `data_${name}`;
  if (suffix === '' && reserved.has(name)) name = `${name}_`;
  return freeName(name, suffix, new Set([...taken, ...fixed]));
}

/** Cut to the length that is allowed, and numbered from 2 where it is taken. */
function freeName(base: string, suffix: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number += 1) {
    const end = (number === 1 ? '' : `_${number}`) + suffix;
    const name = base.slice(0, LONGEST - end.length) + end;
    if (!taken.has(name)) return name;
  }
}
