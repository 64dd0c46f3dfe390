import { Refusal } from './refusal.js';
import type { RunVersion } from './runs.js';

interface Filter {
  /** Allowed values; null: any text. */
  readonly allowed: readonly unknown[] | null;
  /** Whether a request can give several values, separated by commas. */
  readonly isList?: true;
  /** Value if a request gives none; null: every run is listed. */
  readonly default: string | null;
  /** Returns the values that list a run; undefined stands for every value. */
  readonly listedBy: (run: Partial<RunVersion>) => readonly unknown[];
}

/** The filters of the feed, by the names of their parameters (interface 4.2). */
export const FILTERS: Readonly<Record<string, Filter>> = {
  status: { allowed: ['completed', 'failed'], isList: true, default: 'completed', listedBy: (run) => [run.status] },
  environment: { allowed: ['prod', 'test', 'all'], default: 'prod', listedBy: (run) => [run.environment, 'all'] },
  documentType: { allowed: null, default: null, listedBy: (run) => [run.documentType?.slug] },
};

/** Reads the filters of a request. @throws Refusal */
export function parseFilters(parameter: (name: string) => string | null) {
  const given = Object.entries(FILTERS).flatMap(([name, { allowed, isList, default: missing, listedBy }]) => {
    const text = parameter(name) ?? missing;
    if (text === null) return [];
    const values: readonly unknown[] = isList ? [...new Set(text.split(','))].sort() : [text];
    if (allowed === null || values.every((value) => allowed.includes(value))) return [{ name, values, listedBy }];
    const list = new Intl.ListFormat('de').format(allowed.map((value) => `„${value}“`));
    throw new Refusal(400, `Ungültiger Wert für „${name}“: erlaubt sind ${list}.`);
  });
  return {
    /** Equal for the same filters. */
    text: JSON.stringify(given),
    /** Returns whether they list a run. Fields that it lacks pass every filter. */
    list: (run: Partial<RunVersion>) =>
      given.every(({ values, listedBy }) => listedBy(run).some((each) => each === undefined || values.includes(each))),
  };
}
