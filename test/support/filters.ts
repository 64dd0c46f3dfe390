import { type FeedFilters, FILTER_NAMES, UNFILTERED } from '../../src/core/feed-filters.js';

/** Filters by default: every run of the environment `prod`. */
export const DEFAULT_FILTERS: FeedFilters = { ...UNFILTERED, environment: 'prod' };

/** Settings of each filter that hide something: the first one lists the entry of `entryJson()`, the second one hides it. */
export const NARROW: { readonly [Name in keyof FeedFilters]: readonly [FeedFilters[Name], FeedFilters[Name]] } = {
  status: [['completed'], ['failed']],
  environment: ['prod', 'test'],
  documentType: ['rechnung', 'lieferschein'],
};

/** Filters of which one is narrow, with a description and whether they list the entry of `entryJson()`. */
export const NARROW_FILTERS = FILTER_NAMES.flatMap((name) =>
  NARROW[name].map((setting, index) => {
    const filters = { ...UNFILTERED, [name]: setting } as FeedFilters;
    return [`${name} ${setting}`, filters, index === 0] as const;
  }),
);

export const VARIOUS_FILTERS = [['none', UNFILTERED, true] as const, ...NARROW_FILTERS];
