import { once } from 'node:events';
import type { Clock } from '../core/clock.js';
import { startAdminServer } from '../observability/admin/admin-server.js';
import { livenessOf } from '../observability/admin/liveness.js';
import type { Readiness } from '../observability/admin/readiness.js';
import type { Logger } from '../observability/log/logger.js';
import type { FeedsFile } from '../settings/feeds-file.js';
import type { SettingsError, SettingsFor } from '../settings/settings.js';
import type { Group } from '../settings/variables.js';
import { createFeedSet, type FeedSet } from './feeds/feed-set.js';
import { createInvalidEntries, type InvalidEntries } from './feeds/invalid-entries.js';
import { runFeed } from './feeds/run-feed.js';
import { warnAboutPollRate } from './feeds/warn-about-poll-rate.js';
import { type FeedsFileReader, watchFeedsFile } from './feeds/watch-feeds-file.js';
import type { NotifyContext } from './notify-systemd.js';
import { openSharedParts, type ProcessContext, type ProcessSettings } from './shared-parts.js';

/** The feeds that the process follows: those of a file, or the one of its settings. */
export interface FeedSource {
  readonly file: FeedsFile;
  /** Null: there is no file, and the feed stays as it is. */
  readonly changes: FeedsFileReader | null;
}

/** Returns the source of the only feed of a process. */
export function onlyFeed(settings: SettingsFor<Group>): FeedSource {
  return { file: { feeds: [settings], invalid: [], invalidKeyFiles: [], text: '' }, changes: null };
}

export type Daemon = ReturnType<typeof runDaemon>;

/**
 * Creates all parts of the daemon and runs them until the signal aborts.
 * @param context its tracer is closed at the end
 */
export function runDaemon(settings: ProcessSettings, source: FeedSource, context: ProcessContext, signal: AbortSignal) {
  const { logger, clock } = context;
  const [only = null] = source.changes === null ? source.file.feeds : [];
  const bug = new AbortController();
  const onBug = (error: unknown) => bug.abort(error);
  const stop = AbortSignal.any([signal, bug.signal]);

  const invalid = createInvalidEntries(logger);
  const invalidFeeds = () => invalid.entries().length;
  const parts = openSharedParts(settings, context, { onlyFeed: only?.feed.name ?? null, invalidFeeds }, stop);
  const { shared, metrics, readiness } = parts;
  const feeds = createFeedSet((of, until, start) => runFeed(of, shared, until, start), onBug);
  const liveness = livenessOf(feeds.running);
  const admin = startAdminServer({
    ...settings.admin,
    ...{ metrics, liveness, readiness, logger, clock, signal },
    version: shared.version,
    single: only !== null,
    feeds: feeds.running,
    invalid: invalid.entries,
  });
  const ended = new AbortController();
  const notified = notifyServiceManager(settings, { readiness, liveness, logger, clock }, ended.signal);
  const followed = followSource(source, { feeds, invalid, readiness, logger, clock }, stop).catch(onBug);

  const run = async () => {
    if (!stop.aborted) await once(stop, 'abort');
    await Promise.all([followed, feeds.stop()]);
    ended.abort();
    await Promise.all([notified, admin.close(), parts.close()]);
    bug.signal.throwIfAborted();
  };
  /** Settles after the signal has aborted and everything is stopped. Rejects only because of a bug, once everything is stopped. */
  const stopped: Promise<void> = run();
  return { admin, reports: () => feeds.running().map((feed) => feed.report()), stopped };
}

interface FollowContext {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly feeds: FeedSet;
  readonly invalid: InvalidEntries;
  readonly readiness: Readiness;
}

/** Follows the feeds of a source. A file is read again when it changes. */
async function followSource(source: FeedSource, context: FollowContext, signal: AbortSignal): Promise<void> {
  const { feeds, invalid, readiness, logger, clock } = context;
  const follow = (file: FeedsFile) => {
    invalid.report(file.invalid);
    warnAboutPollRate(file.feeds, logger);
    if (file.feeds.length === 0 && file.invalid.length === 0)
      readiness.ready(); // there is no schema to wait for
    else if (file.feeds.length === 0) readiness.waitingFor('every entry of the feeds file is invalid; see the log');
    feeds.follow(file);
  };
  const onRefused = (error: SettingsError) => {
    const remedy = 'correct the file; until then its last valid version stays in force';
    logger.error('feeds file refused', { error, remedy });
  };
  const onMoved = (names: readonly string[], ms: number) => {
    const remedy =
      'the new file takes effect after the stated seconds without a change; if the move is not intended, correct the file before then';
    logger.warn('delaying the move of feeds', { feeds: names, seconds: ms / 1000, remedy });
  };
  follow(source.file);
  if (source.changes === null) return;
  const { movedIn } = feeds;
  await watchFeedsFile(source.file, { ...source.changes, onRead: follow, movedIn, onMoved, onRefused }, clock, signal);
}

/** Notifies systemd, if it started this process. Its code is loaded only then. */
async function notifyServiceManager(
  { process: { systemd } }: ProcessSettings,
  context: NotifyContext,
  signal: AbortSignal,
): Promise<void> {
  if (systemd.notifySocket === null) return;
  const { notifySystemd, systemdSender } = await import('./notify-systemd.js');
  await notifySystemd(systemd.watchdogMs, context, systemdSender(systemd.notifySocket), signal);
}
