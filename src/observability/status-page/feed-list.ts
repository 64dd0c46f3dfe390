import type { StatusReport } from './status-report.js';

/** An entry of the feeds file that cannot be used. Its mistakes are lines without secrets. */
export interface InvalidEntry {
  readonly name: string;
  readonly mistakes: readonly string[];
}

/** A feed that runs, or an entry of the feeds file that has mistakes, or both. */
export interface ListedFeed {
  readonly name: string;
  /** Null if the feed does not run. */
  readonly report: StatusReport | null;
  /** Mistakes in its entry of the feeds file. */
  readonly mistakes: readonly string[];
}

export type Totals = Readonly<ReturnType<typeof totalsOf>>;

/** Combines the feeds that run with the invalid entries of the feeds file: each name once, in any order. */
export function listFeeds(
  running: readonly { readonly name: string; readonly report: StatusReport }[],
  invalid: readonly InvalidEntry[],
): ListedFeed[] {
  const feeds = new Map<string, ListedFeed>(running.map((feed) => [feed.name, { ...feed, mistakes: [] }]));
  for (const { name, mistakes } of invalid) {
    const known = feeds.get(name);
    feeds.set(name, { name, report: known?.report ?? null, mistakes: [...(known?.mistakes ?? []), ...mistakes] });
  }
  return [...feeds.values()];
}

/**
 * Sorts feeds: invalid entries, then feeds that are held, failing ones, stuck ones, those with open quarantine, those of unknown
 * freshness, and the others. Within each of these the highest lag is first, an unknown one before all; ties are in the order of their names.
 */
export function worstFirst(feeds: readonly ListedFeed[]): ListedFeed[] {
  return feeds
    .map((feed) => ({ feed, severity: severityOf(feed), lag: feed.report?.lagSeconds ?? Number.MAX_VALUE }))
    .sort(
      (one, other) =>
        other.severity - one.severity || other.lag - one.lag || (one.feed.name < other.feed.name ? -1 : 1),
    )
    .map(({ feed }) => feed);
}

/** Severities from which a feed needs attention, and from which it works only if an operator acts. */
const ATTENTION = 2;
const ACTION = 5;
const INVALID = 6;

/** From 0 for a feed that works to 6 for an invalid entry. */
function severityOf({ report, mistakes }: ListedFeed): number {
  if (mistakes.length > 0 || report === null) return INVALID;
  if (report.currentErrors.some(({ held }) => held)) return ACTION;
  if (report.currentErrors.length > 0) return 4;
  if (report.stuckSince !== null) return 3;
  if (report.quarantinedEntries) return ATTENTION;
  return report.lagSeconds === null ? 1 : 0;
}

/** Returns the feeds with this text in their names, in upper or lower case. */
export function searchFeeds(feeds: readonly ListedFeed[], search: string): ListedFeed[] {
  const wanted = search.toLowerCase();
  return feeds.filter(({ name }) => name.toLowerCase().includes(wanted));
}

/** Returns the numbers of feeds, and the one with the highest lag. */
export function totalsOf(feeds: readonly ListedFeed[]) {
  const severities = feeds.map(severityOf);
  const reports = feeds.flatMap(({ report }) => report ?? []);
  const lags = feeds.flatMap(({ name, report }) =>
    report === null || report.lagSeconds === null ? [] : [{ name, lagSeconds: report.lagSeconds }],
  );
  return {
    feeds: feeds.length,
    invalid: count(severities, (each) => each === INVALID),
    failing: count(reports, ({ currentErrors }) => currentErrors.length > 0),
    /** Those that are stuck and not failing. */
    stuck: count(reports, ({ currentErrors, stuckSince }) => currentErrors.length === 0 && stuckSince !== null),
    needAttention: count(severities, (each) => each >= ATTENTION),
    needAction: count(severities, (each) => each >= ACTION),
    starting: count(reports, ({ role }) => role === 'starting'),
    /** Those that this process leads. */
    leading: count(reports, ({ role }) => role === 'leader'),
    caughtUp: count(reports, (report) => report.caughtUp),
    withUnknownLag: feeds.length - lags.length,
    worst: lags.reduce<(typeof lags)[number] | null>(
      (worst, lag) => (lag.lagSeconds > (worst?.lagSeconds ?? -1) ? lag : worst),
      null,
    ),
  };
}

function count<T>(values: readonly T[], matches: (value: T) => boolean): number {
  return values.filter(matches).length;
}
