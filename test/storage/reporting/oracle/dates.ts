const MONTHS: readonly (readonly string[])[] = [
  ['januar', 'jan', 'jänner', 'jän'],
  ['februar', 'feb', 'feber'],
  ['märz', 'mär', 'mrz', 'maerz'],
  ['april', 'apr'],
  ['mai'],
  ['juni', 'jun'],
  ['juli', 'jul'],
  ['august', 'aug'],
  ['september', 'sep', 'sept'],
  ['oktober', 'okt'],
  ['november', 'nov'],
  ['dezember', 'dez'],
];
const BLANKS = ' \t\n\r\f\v\u00a0\u202f';
const DIGITS = '0123456789';

/** Splits a text into runs of digits, runs of blanks, points, hyphens, and words of all other characters. */
function tokens(text: string): readonly string[] {
  const kindOf = (character: string) =>
    DIGITS.includes(character)
      ? 'digit'
      : BLANKS.includes(character)
        ? 'blank'
        : '.-'.includes(character)
          ? character
          : 'word';
  const found: string[] = [];
  let last = '';
  for (const character of text) {
    const kind = kindOf(character);
    if (kind === last && kind.length > 1) found.push(`${found.pop()}${character}`);
    else found.push(character);
    last = kind;
  }
  return found.map((token) => (BLANKS.includes(token.charAt(0)) ? ' ' : token));
}

/** Reads a date in German notation, or an ISO date, token by token, as a person would. Null if it is none. */
export function germanDate(text: string): string | null {
  if ([...text].length > 40) return null;
  const all = tokens(text).filter((token, index, { length }) => token !== ' ' || (index > 0 && index < length - 1));
  const iso = all.filter((_, index) => index % 2 === 0);
  if (all.length === 5 && all[1] === '-' && all[3] === '-' && iso.map(({ length }) => length).join() === '4,2,2')
    return isoDate(iso[0], iso[1], iso[2]);
  const rest = [...all];
  const take = (expected: string) => rest[0] === expected && rest.shift() !== undefined;
  const day = rest.shift() ?? '';
  const hasPoint = take('.');
  take(' ');
  const name = rest.shift() ?? '';
  const month =
    MONTHS.findIndex((names) => names.includes(name.replace(/[A-ZÄ]/g, (letter) => letter.toLowerCase()))) + 1;
  const hasSecondPoint = take('.');
  take(' ');
  const year = rest.shift() ?? '';
  if (rest.length > 0 || day.length > 2) return null;
  if (month > 0) return year.length === 4 ? isoDate(year, String(month), day) : null;
  if (!hasPoint || !hasSecondPoint || name.length > 2) return null;
  if (year.length === 4) return isoDate(year, name, day);
  return year.length === 2 ? isoDate(`${year < '70' ? 20 : 19}${year}`, name, day) : null;
}

/** Null if a part is not a number, or the day does not exist. */
function isoDate(...parts: readonly (string | undefined)[]): string | null {
  if (!parts.every((part) => part !== undefined && part !== '' && [...part].every((each) => DIGITS.includes(each))))
    return null;
  const [year = 0, month = 0, day = 0] = parts.map(Number);
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const isSame = date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return isSame && year > 0 ? date.toISOString().slice(0, 10) : null;
}
