import type { Logger } from '../../observability/log/logger.js';
import type { SettingsFor } from '../../settings/settings.js';

/**
 * Warns if the feeds poll more often than the limit of the process allows. Then each of them polls less often than its setting
 * says.
 */
export function warnAboutPollRate(feeds: readonly SettingsFor<'feed' | 'service'>[], logger: Logger): void {
  const limit = feeds[0]?.service.requestsPerSecond ?? Number.POSITIVE_INFINITY;
  const needed = feeds.reduce((sum, { feed }) => sum + 1000 / feed.pollIntervalMs, 0);
  const pollsPerSecond = Math.round(needed * 10) / 10;
  if (pollsPerSecond <= limit) return;
  const remedy = 'raise SCANFEED_REQUESTS_PER_SECOND, or the poll interval of the feeds';
  logger.warn('poll rate exceeds request limit', { pollsPerSecond, limit, remedy });
}
