import type { Clock } from '../../core/clock.js';
import { type InvalidEntry, listFeeds } from '../status-page/feed-list.js';
import { FEEDS_PAGE_POLICY, renderFeedsPage } from '../status-page/feeds-page.js';
import type { RecentMinute } from '../status-page/recent-history.js';
import { renderStatusPage, STATUS_PAGE_POLICY } from '../status-page/status-page.js';
import type { StatusReport } from '../status-page/status-report.js';
import { type Answer, htmlAnswer, textAnswer } from './single-request-server.js';

export interface ShownFeed {
  readonly name: string;
  report(): StatusReport;
  /** The minutes of the charts, oldest first. */
  recent(): readonly RecentMinute[];
}

export interface StatusOptions {
  readonly version: string;
  /** Whether the process follows one feed without a feeds file. Its status is at the top, without a list. */
  readonly single: boolean;
  /** In any order; read at each request. */
  readonly feeds: () => readonly ShownFeed[];
  /** The entries of the feeds file that have mistakes; read at each request. */
  readonly invalid?: () => readonly InvalidEntry[];
  readonly clock: Clock;
}

/** The options, and the start of the process as ISO 8601. */
export type StatusContext = StatusOptions & { readonly startedAt: string };

type StatusRoute = (context: StatusContext, query: URLSearchParams) => Answer;

/** The page or the JSON of a feed of the list, and of the only feed. A valid name needs no escapes. */
const FEED_PATH = /^\/feeds\/(?<name>[A-Za-z0-9][A-Za-z0-9._-]{0,62})(?<json>\/status\.json)?$/;
const ONLY_FEED_PATH = /^\/(?<json>status\.json)?$/;

const LIST_ROUTES: Readonly<Record<string, StatusRoute>> = {
  '/status.json': ({ version, startedAt, feeds, invalid }) =>
    jsonAnswer({ version, startedAt, feeds: feeds().map((feed) => feed.report()), invalid: invalid?.() ?? [] }),
  '/': listPage,
};

/** Returns the route for a path with the status of feeds, or undefined for other paths. */
export function statusRoute(path: string, single: boolean): StatusRoute | undefined {
  if (!single && Object.hasOwn(LIST_ROUTES, path)) return LIST_ROUTES[path];
  const of = (single ? ONLY_FEED_PATH : FEED_PATH).exec(path)?.groups;
  if (of === undefined) return undefined;
  return (context) => {
    const feed = context.feeds().find(({ name }) => single || name === of.name);
    if (feed === undefined) return textAnswer(404, 'no such feed is running; see / for all feeds');
    return of.json === undefined ? pageOf(feed, context) : jsonAnswer(feed.report());
  };
}

function pageOf(feed: ShownFeed, { clock, single }: StatusContext): Answer {
  const page = renderStatusPage({
    report: feed.report(),
    recent: feed.recent(),
    now: clock.now(),
    listed: !single,
  });
  return htmlAnswer(page, STATUS_PAGE_POLICY);
}

function listPage({ feeds, invalid, clock }: StatusContext, query: URLSearchParams): Answer {
  const running = feeds().map((feed) => ({ name: feed.name, report: feed.report() }));
  const page = renderFeedsPage({
    feeds: listFeeds(running, invalid?.() ?? []),
    search: query.get('search')?.trim() ?? '',
    now: clock.now(),
  });
  return htmlAnswer(page, FEEDS_PAGE_POLICY);
}

function jsonAnswer(value: unknown): Answer {
  return {
    status: 200,
    contentType: 'application/json; charset=utf-8',
    body: `${JSON.stringify(value, null, 2)}\n`,
  };
}
