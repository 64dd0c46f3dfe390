/**
 * JSON numbers as text. Amounts are exact decimals: their text keeps trailing zeros, which a JavaScript number
 * would lose.
 */

/** Whole cents to `1234.50`. */
export function amount(cents: number): string {
  const sign = cents < 0 ? '-' : '';
  const digits = String(Math.abs(cents)).padStart(3, '0');
  return `${sign}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** Whole thousandths to `12.500`. */
export function quantity(thousandths: number): string {
  const digits = String(thousandths).padStart(4, '0');
  return `${digits.slice(0, -3)}.${digits.slice(-3)}`;
}

/** Ten-thousandths to a confidence such as `0.9730`. */
export function confidence(tenThousandths: number): string {
  return `${Math.floor(tenThousandths / 10_000)}.${String(tenThousandths % 10_000).padStart(4, '0')}`;
}

/** A string or null as JSON. */
export function textOrNull(value: string | null): string {
  return value === null ? 'null' : JSON.stringify(value);
}

/** Milliseconds since 1970 as an ISO 8601 JSON string. */
export function timestamp(ms: number | null): string {
  return ms === null ? 'null' : `"${new Date(ms).toISOString()}"`;
}
