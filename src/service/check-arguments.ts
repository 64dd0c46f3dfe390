import { InvalidArgumentError } from './errors/service-error.js';

/** @param message names the argument, not its value @throws InvalidArgumentError */
export function requireArgument(isValid: boolean, message: string): asserts isValid {
  if (!isValid) throw new InvalidArgumentError(message);
}

/** Returns a whole number from 1 to a maximum. @throws InvalidArgumentError */
export function atLeastOne(value: number, name: string, max = 2 ** 31 - 1): number {
  const isValid = Number.isInteger(value) && value >= 1 && value <= max;
  requireArgument(isValid, `${name} must be a whole number from 1 to ${max}`);
  return value;
}

/** Checks options that are called later. @throws InvalidArgumentError */
export function requireFunctions(options: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(options))
    requireArgument(value === undefined || typeof value === 'function', `${name} must be a function`);
}
