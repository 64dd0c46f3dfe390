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

interface Values {
  /** Every value that runs can have; null: any text. */
  readonly all: readonly string[] | null;
  /** Describes the runs with a value, or those with other values. */
  readonly runs: (value: string, isOther: boolean) => string;
}

const VALUES: Readonly<Record<keyof FeedFilters, Values>> = {
  status: { all: ['completed', 'failed'], runs: (status) => `${status} runs` },
  environment: { all: ['prod', 'test'], runs: (name) => `runs of the environment ${name}` },
  documentType: {
    all: null,
    runs: (slug, isOther) => `runs of ${isOther ? 'other document types than' : 'the document type'} ${slug}`,
  },
};

export function hidesNothing(filters: FeedFilters): boolean {
  return runsOnlyIn(UNFILTERED, filters).length === 0;
}

/** Describes the runs that `these` filters include and `those` do not, for people. Pure. */
export function runsOnlyIn(these: FeedFilters, those: FeedFilters): string[] {
  return FILTER_NAMES.flatMap((name) => {
    const { runs } = VALUES[name];
    const [included, others] = [valuesOf(name, these), valuesOf(name, those)];
    if (others === null) return [];
    if (included === null) return others.map((value) => runs(value, true));
    return included.filter((value) => !others.includes(value)).map((value) => runs(value, false));
  });
}

/** Returns the values that a filter includes; null: any. Filters that an earlier version stored may lack one, which hides nothing. */
function valuesOf(name: keyof FeedFilters, { [name]: setting = UNFILTERED[name] }: FeedFilters) {
  return setting === null || setting === UNFILTERED[name] ? VALUES[name].all : [setting].flat();
}

/** Returns the query parameters of the filters (interface 4.2). A filter without one hides nothing. */
export function filterParameters(filters: FeedFilters): [name: string, value: string][] {
  return FILTER_NAMES.flatMap((name) => (filters[name] === null ? [] : [[name, String(filters[name])]]));
}
