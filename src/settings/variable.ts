import { type Kind, text } from './kinds.js';

/** The parts of the settings; commands ask for those they need. */
export const GROUPS = ['service', 'feed', 'database', 'reconcile', 'pending', 'admin', 'process'] as const;
export type Group = (typeof GROUPS)[number];

/** One environment variable: the source of its parsing, of the text of mistakes and of docs/settings.md. */
export interface Variable<T = unknown> extends Kind<T> {
  readonly name: string;
  readonly group: Group;
  readonly meaning: string;
  /** Parsed like a given value; null where there is none. */
  readonly default: string | null;
  /** What stands for the default in the reference, where it is no value. */
  readonly defaultText?: string | undefined;
  readonly required: boolean;
  /** Never shown; may be given as NAME_FILE. */
  readonly secret: boolean;
}

interface Extra {
  readonly secret?: true;
  readonly defaultText?: string;
}

type Place = readonly [group: Group, name: string];

const declared = <T, Given extends T>(
  [group, name]: Place,
  kind: Kind<Given>,
  meaning: string,
  rest: Pick<Variable, 'default' | 'required'> & Extra,
): Variable<T> => ({ ...kind, secret: false, ...rest, group, name, meaning });

export const required = <T>(place: Place, kind: Kind<T>, meaning: string, extra: Extra = {}): Variable<T> =>
  declared(place, kind, meaning, { ...extra, default: null, required: true });

export const optional = <T>(place: Place, kind: Kind<T>, meaning: string, extra: Extra = {}): Variable<T | null> =>
  declared(place, kind, meaning, { ...extra, default: null, required: false });

export const defaulted = <T>(place: Place, kind: Kind<T>, value: string, meaning: string): Variable<T> =>
  declared(place, kind, meaning, { default: value, required: false });

export const filePath = text('the path of a file', /^[^\0]+$/);
export const words = text('text without control characters', /^[^\p{Cc}]+$/u);
