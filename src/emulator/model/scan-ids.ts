import { hash, scramble, unscramble } from './random.js';

/**
 * Scan ids that look like random UUIDs, from which the run number can be computed without a table: the first eight digits are
 * the scrambled number, and the rest is a checksum that depends on the organization's seed.
 */

const hex = (value: number): string => value.toString(16).padStart(8, '0');

/** Returns the scan id of a run number from 0 to 2^32 - 1. */
export function scanIdOf(seed: number, number: number): string {
  const head = hex(scramble(number ^ seed));
  const a = hex(hash(seed, number, 101));
  const b = hex(hash(seed, number, 102));
  return `${head}-${a.slice(0, 4)}-4${a.slice(4, 7)}-8${b.slice(0, 3)}-${b.slice(3)}${head.slice(1)}`;
}

/** Returns the run number of a scan id, or null if it does not belong to this organization. */
export function runNumberOf(seed: number, scanId: string): number | null {
  const head = scanId.slice(0, 8);
  if (!/^[0-9a-f]{8}$/.test(head)) return null;
  const number = (unscramble(Number.parseInt(head, 16)) ^ seed) >>> 0;
  return scanIdOf(seed, number) === scanId ? number : null;
}
