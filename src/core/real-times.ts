/**
 * The years in which a time of the service can be. Programs write the zero or the maximum of a type for a time that was never set:
 * year 1 (Go, .NET), 1601, 1753, 1900, 1970 (Unix), 1980 (FAT, GPS), 2000 and 2001 (Apple), in any zone; 2079, 2099, 9999.
 */
const [FIRST_YEAR, LAST_YEAR] = [2002, 2078];

/** Returns whether a time can be meant, and does not stand for one that was never set. */
export function isRealTime(time: Date): boolean {
  const year = time.getUTCFullYear();
  return year >= FIRST_YEAR && year <= LAST_YEAR;
}
