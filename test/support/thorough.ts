/** Whether tests try many cases, as `npm run test:all` does: nobody waits for it. */
export const IS_THOROUGH = process.env.TEST_THOROUGH === '1';

/** Returns the number of cases that a property or a simulation tries. */
export function cases(quick: number, thorough: number): number {
  return IS_THOROUGH ? thorough : quick;
}
