import { expect, it } from 'vitest';
import { warnAboutPollRate } from '../../../src/daemon/feeds/warn-about-poll-rate.js';
import { recordingLogger } from '../../support/observed.js';
import { settingsWith } from '../../support/settings.js';

/** Returns the warnings for this number of feeds, which all have the same settings. */
function warningsOf(count: number, variables: Record<string, string>): unknown[] {
  const { logger, lines } = recordingLogger();
  const settings = settingsWith(variables);
  const feeds = Array.from({ length: count }, () => settings);
  warnAboutPollRate(feeds, logger);
  return lines.map(({ message, fields }) => ({ message, ...fields }));
}

it('warns when the feeds poll more often than the limit allows', () => {
  const variables = { SCANFEED_POLL_INTERVAL: '5s', SCANFEED_REQUESTS_PER_SECOND: '100' };
  expect(warningsOf(501, variables)).toEqual([
    {
      message: 'poll rate exceeds request limit',
      pollsPerSecond: 100.2,
      limit: 100,
      remedy: 'raise SCANFEED_REQUESTS_PER_SECOND, or the poll interval of the feeds',
    },
  ]);
});

it('does not warn when the limit suffices, or there is none', () => {
  expect(warningsOf(500, { SCANFEED_POLL_INTERVAL: '5s', SCANFEED_REQUESTS_PER_SECOND: '100' })).toEqual([]);
  expect(warningsOf(10_000, { SCANFEED_POLL_INTERVAL: '10ms' })).toEqual([]);
  expect(warningsOf(0, {})).toEqual([]);
});
