/** A decimal number: `units` divided by ten to the power of `scale`. */
export interface Decimal {
  readonly units: bigint;
  readonly scale: number;
}

/** Reads a number of JSON, every digit of it. */
export function jsonNumber(text: string): Decimal {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const scale = fraction.length - Number(exponent);
  const units = BigInt(whole + fraction);
  return scale >= 0 ? { units, scale } : { units: units * 10n ** BigInt(-scale), scale: 0 };
}

/** Writes a number with all its digits, as PostgreSQL does. */
export function decimalText({ units, scale }: Decimal): string {
  const text = (units < 0n ? -units : units).toString().padStart(scale + 1, '0');
  const sign = units < 0n ? '-' : '';
  return scale === 0 ? sign + text : `${sign}${text.slice(0, -scale)}.${text.slice(-scale)}`;
}

/** Writes a number without zeros at its end. */
export function shortText(number: Decimal): string {
  const text = decimalText(number);
  return text.includes('.') ? text.replace(/[.]?0+$/, '') : text;
}

/** Adds numbers, and writes the sum without zeros at its end; null if there are none. */
export function sumOf(numbers: readonly Decimal[]): string | null {
  if (numbers.length === 0) return null;
  const scale = Math.max(...numbers.map((each) => each.scale));
  const units = numbers.reduce((sum, each) => sum + each.units * 10n ** BigInt(scale - each.scale), 0n);
  return shortText({ units, scale });
}

const isDigit = (character: string | undefined) => character !== undefined && '0123456789'.includes(character);

/**
 * Reads a number in German notation, from left to right, as a person would. Null if it is none, or could be a number with a
 * decimal point: three digits behind a single point, with nothing around them but a sign.
 */
export function germanNumber(text: string): string | null {
  const marks: string[] = [];
  const characters = [...text].map((each) => ('\u00a0\u202f'.includes(each) ? ' ' : each));
  let at = 0;
  /** Passes blanks, currencies and signs; a sign before the number may be a plus. */
  const passMarks = (signs: string) => {
    for (;;) {
      const rest = characters.slice(at).join('');
      const mark = rest.startsWith('EUR') ? 'EUR' : (characters[at] ?? '');
      if (' \t\n\v\f\r'.includes(mark) && mark !== '') at += 1;
      else if (mark === 'EUR' || mark === '€' || (mark !== '' && signs.includes(mark))) {
        marks.push(mark);
        at += mark.length;
      } else return;
    }
  };
  passMarks('+-\u2212');
  const before = marks.splice(0);
  const start = at;
  const takeDigits = () => {
    const from = at;
    while (isDigit(characters[at])) at += 1;
    return characters.slice(from, at).join('');
  };
  let whole = takeDigits();
  const separator = characters[at] ?? '';
  let groups = 0;
  const isGroup = () => characters[at] === separator && [1, 2, 3].every((step) => isDigit(characters[at + step]));
  if ((separator === '.' || separator === ' ') && /^[1-9][0-9]{0,2}$/.test(whole)) {
    while (isGroup() && !isDigit(characters[at + 4])) {
      at += 1;
      whole += takeDigits();
      groups += 1;
    }
  }
  let fraction = '';
  if (characters[at] === ',') {
    at += 1;
    fraction = takeDigits();
    if (fraction === '') return null;
  }
  const end = at;
  passMarks('-');
  const all = [...before, ...marks];
  if (whole === '' || at < characters.length) return null;
  if (!isOrdered(before) || !isOrdered(marks) || [...text].filter((each) => '-\u2212'.includes(each)).length > 1)
    return null;
  const alone = all.every((mark) => '+-\u2212'.includes(mark)) && marks.length === 0;
  if (alone && groups === 1 && separator === '.' && fraction === '' && end > start) return null;
  const minus = all.some((mark) => '-\u2212'.includes(mark)) ? '-' : '';
  const digits = whole.replace(/^0+(?=\d)/, '') + (fraction === '' ? '' : `.${fraction}`);
  return /[1-9]/.test(digits) ? minus + digits : digits;
}

/** At most one sign, and at most one currency on each side of it. */
function isOrdered(marks: readonly string[]): boolean {
  const kinds = marks.map((mark) => (mark === 'EUR' || mark === '€' ? 'c' : 's')).join('');
  return ['', 'c', 's', 'cs', 'sc', 'cc', 'csc'].includes(kinds);
}
