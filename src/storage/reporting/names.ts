/** Maximum length of a name, bytes, and characters, since names are ASCII. PostgreSQL truncates longer ones without an error. */
const MAX_LENGTH = 63;

const GERMAN: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss' };

/** Words with capitals inside: German abbreviations, and plurals of acronyms such as `IDs`. */
const ABBREVIATION = /(?:(?<!\p{L})(?:mw|u)St|MwSt|E?USt|GmbH|\p{Lu}{2,}s)(?!\p{Ll})/gu;
/** Places before a capital where a new word begins: `skonto|Prozent`, `PDF|Name`, `zeile2|Text`. */
const WORD_BREAK = /(?<=\p{Ll})(?=\p{Lu})|(?<=[\p{Lu}\d])(?=\p{Lu}\p{Ll})/gu;

/**
 * Converts a key or slug to a part of a name that needs no quotes: `Fälligkeit am` becomes `faelligkeit_am`, and `skontoProzent`
 * `skonto_prozent`. Lower case, like unquoted names in PostgreSQL. Empty if no character remains.
 */
function namePart(text: string): string {
  return text
    .normalize('NFC')
    .replace(ABBREVIATION, (word) => word.charAt(0) + word.slice(1).toLowerCase())
    .replace(WORD_BREAK, '_')
    .toLowerCase()
    .replace(/[äöüß]/g, (letter) => GERMAN[letter] ?? letter)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');
}

/**
 * Returns the name of the view of a document type, or of nested arrays in its documents.
 * @param suffix `_history` for superseded revisions
 */
export function viewName(
  slug: string,
  arrays: readonly (readonly string[])[],
  taken: ReadonlySet<string>,
  suffix = '',
): string {
  const parts = ['document', namePart(slug), ...arrays.flat().map(namePart)];
  return freeName(parts.filter(Boolean).join('_'), suffix, taken);
}

/** Names that a column must not have. */
export interface NameRules {
  /** Columns that every view of this kind has; a field with such a name gets the prefix `data_`. */
  readonly fixed: ReadonlySet<string>;
  /** Reserved words; a field with such a name gets the suffix `_`. */
  readonly reserved: ReadonlySet<string>;
}

/**
 * Returns the name of a column.
 * @param suffix marks a second column of the same field, such as `__text`; no key results in two underscores
 */
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

/** Truncates a name to the maximum length, and numbers it from 2 if it is taken. */
function freeName(base: string, suffix: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number += 1) {
    const end = (number === 1 ? '' : `_${number}`) + suffix;
    const name = base.slice(0, MAX_LENGTH - end.length) + end;
    if (!taken.has(name)) return name;
  }
}
