import { type Kind, text } from './kinds.js';

/** An environment variable: how it is parsed, and how errors and docs/settings.md describe it. */
export interface Variable<T = unknown> {
  readonly schema: Kind<T>;
  /** Description of the allowed values. */
  readonly allowed: string;
  readonly name: string;
  readonly meaning: string;
  /** Parsed like a given value; null if there is none. */
  readonly default: string | null;
  /** Description of the default in docs/settings.md, if it is not a fixed value. */
  readonly defaultText?: string | undefined;
  readonly required: boolean;
  /** Never shown. It can be read from a file whose path is in NAME_FILE. */
  readonly secret: boolean;
}

interface VariableOptions {
  readonly secret?: true;
  readonly defaultText?: string;
}

const declared = <T, Given extends T>(
  name: string,
  schema: Kind<Given>,
  meaning: string,
  rest: VariableOptions & { readonly default: string | null; readonly required: boolean },
): Variable<T> => ({ schema, allowed: schema.description ?? '', secret: false, ...rest, name, meaning });

export const required = <T>(name: string, kind: Kind<T>, meaning: string, options: VariableOptions = {}): Variable<T> =>
  declared(name, kind, meaning, { ...options, default: null, required: true });

export const optional = <T>(
  name: string,
  kind: Kind<T>,
  meaning: string,
  options: VariableOptions = {},
): Variable<T | null> => declared(name, kind, meaning, { ...options, default: null, required: false });

export const defaulted = <T>(name: string, kind: Kind<T>, value: string, meaning: string): Variable<T> =>
  declared(name, kind, meaning, { default: value, required: false });

export const filePath = text('a file path', /^[^\0]+$/);
export const words = text('text without control characters', /^[^\p{Cc}]+$/u);
