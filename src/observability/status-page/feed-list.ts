import { alarm, SEVERITY, type Summary, summaryOf } from './state.js';
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

export function summaryOfListed({ report, mistakes }: ListedFeed): Summary {
  return mistakes.length > 0 || report === null ? alarm(SEVERITY.invalid, 'Invalid entry') : summaryOf(report);
}

/**
 * Sorts feeds by severity, worst first. Within each severity the highest lag is first, an unknown one before all; ties are in the order
 * of their names.
 */
export function worstFirst(feeds: readonly ListedFeed[]): ListedFeed[] {
  return feeds
    .map((feed) => ({
      feed,
      severity: summaryOfListed(feed).severity ?? 0,
      lag: feed.report?.lagSeconds ?? Number.MAX_VALUE,
    }))
    .sort(
      (one, other) =>
        other.severity - one.severity || other.lag - one.lag || (one.feed.name < other.feed.name ? -1 : 1),
    )
    .map(({ feed }) => feed);
}

/** Returns the feeds with this text in their names, in upper or lower case. */
export function searchFeeds(feeds: readonly ListedFeed[], search: string): ListedFeed[] {
  const wanted = search.toLowerCase();
  return feeds.filter(({ name }) => name.toLowerCase().includes(wanted));
}

/** Returns the numbers of feeds, and the one with the highest lag. */
export function totalsOf(feeds: readonly ListedFeed[]) {
  const severities = feeds.flatMap((feed) => summaryOfListed(feed).severity ?? []);
  const reports = feeds.flatMap(({ report }) => report ?? []);
  const lags = feeds.flatMap(({ name, report }) =>
    report === null || report.lagSeconds === null ? [] : [{ name, lagSeconds: report.lagSeconds }],
  );
  return {
    feeds: feeds.length,
    invalid: count(severities, (each) => each === SEVERITY.invalid),
    failing: count(reports, ({ currentErrors }) => currentErrors.length > 0),
    /** Those that are stuck and not failing. */
    stuck: count(reports, (report) => summaryOf(report).severity === SEVERITY.stuck),
    needAttention: severities.length,
    needAction: count(severities, (each) => each >= SEVERITY.held),
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
