/** Read-time filters of the feed (interface 4.2). Always sent, never left to defaults. */
export interface FeedFilters {
  /** States of the runs to list. */
  readonly status: readonly ('completed' | 'failed')[];
  /** Environments of the runs to list. */
  readonly environment: 'prod' | 'test' | 'all';
  /** A slug; null: every type. */
  readonly documentType: string | null;
}

/** Filters that hide nothing. */
export const UNFILTERED: FeedFilters = { status: ['completed', 'failed'], environment: 'all', documentType: null };
export const FILTER_NAMES = Object.keys(UNFILTERED) as readonly (keyof FeedFilters)[];

interface Filter {
  /** The column of `runs` that it selects by. */
  readonly column: string;
  /** Every value that runs can have; null: any text. */
  readonly values: readonly string[] | null;
}

export const FILTERS: Readonly<Record<keyof FeedFilters, Filter>> = {
  status: { column: 'status', values: ['completed', 'failed'] },
  environment: { column: 'environment', values: ['prod', 'test'] },
  documentType: { column: 'document_type_slug', values: null },
};

export function hidesNothing(filters: FeedFilters): boolean {
  return runsOnlyIn(UNFILTERED, filters).length === 0;
}

/** Describes the runs that `these` filters include and `those` do not, for people. Pure. */
export function runsOnlyIn(these: FeedFilters, those: FeedFilters): string[] {
  return FILTER_NAMES.flatMap((name) => {
    const [included, others] = [includedValues(name, these), includedValues(name, those)];
    if (others === null) return [];
    if (included === null) return others.map((value) => `runs with a ${name} other than ${value}`);
    return included.filter((value) => !others.includes(value)).map((value) => `runs with ${name} ${value}`);
  });
}

/** Returns the values that a filter includes; null: any. Filters that an earlier version stored may lack one, which hides nothing. */
export function includedValues(name: keyof FeedFilters, { [name]: setting = UNFILTERED[name] }: FeedFilters) {
  return setting === null || setting === UNFILTERED[name] ? FILTERS[name].values : [setting].flat();
}

/** Returns the query parameters of the filters (interface 4.2). A filter without one hides nothing. */
export function filterParameters(filters: FeedFilters): [name: string, value: string][] {
  return FILTER_NAMES.flatMap((name) => (filters[name] === null ? [] : [[name, String(filters[name])]]));
}
