/**
 * JSON numbers as text. Amounts are exact decimals: their text keeps trailing zeros, which a JavaScript number
 * would lose.
 */

/** Whole cents to `1234.50`. */
export function amount(cents: number): string {
  return (cents / 100).toFixed(2);
}

/** Whole thousandths to `12.500`. */
export function quantity(thousandths: number): string {
  return (thousandths / 1_000).toFixed(3);
}

/** Ten-thousandths to a confidence such as `0.9730`. */
export function confidence(tenThousandths: number): string {
  return (tenThousandths / 10_000).toFixed(4);
}

/** A string or null as JSON. */
export function textOrNull(value: string | null): string {
  return value === null ? 'null' : JSON.stringify(value);
}

/** Milliseconds since 1970 as an ISO 8601 JSON string. */
export function timestamp(ms: number | null): string {
  return ms === null ? 'null' : `"${new Date(ms).toISOString()}"`;
}
