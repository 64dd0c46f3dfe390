/**
 * Formats JSON numbers as text. Amounts are exact decimals with trailing zeros, which a JavaScript number would lose.
 */

/** Formats whole cents as `1234.50`. */
export function amount(cents: number): string {
  return (cents / 100).toFixed(2);
}

/** Formats whole thousandths as `12.500`. */
export function quantity(thousandths: number): string {
  return (thousandths / 1_000).toFixed(3);
}

/** Formats ten-thousandths as a confidence such as `0.9730`. */
export function confidence(tenThousandths: number): string {
  return (tenThousandths / 10_000).toFixed(4);
}

/** Formats a string or null as JSON. */
export function textOrNull(value: string | null): string {
  return value === null ? 'null' : JSON.stringify(value);
}

/** Formats milliseconds since 1970 as an ISO 8601 JSON string. */
export function timestamp(ms: number | null): string {
  return ms === null ? 'null' : `"${new Date(ms).toISOString()}"`;
}
