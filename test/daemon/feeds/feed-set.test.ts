import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createFeedSet, type StartFeed } from '../../../src/daemon/feeds/feed-set.js';
import type { RunningFeed } from '../../../src/daemon/feeds/run-feed.js';
import type { ListedFeeds } from '../../../src/settings/feeds-file.js';
import { settingsWith } from '../../support/settings.js';

interface Entry {
  readonly name: string;
  readonly pollInterval: string;
  readonly schema?: string;
  readonly key?: string;
}

const entry = (name: string, pollInterval = '5s'): Entry => ({ name, pollInterval });

function fileOf(...entries: readonly (Entry | string)[]): ListedFeeds {
  const given = entries.map((of) => (typeof of === 'string' ? entry(of) : of));
  return {
    feeds: given.map(({ name, pollInterval, schema = 'scanfeed', key = 'one' }) => {
      const env = { SCANFEED_FEED: name, SCANFEED_POLL_INTERVAL: pollInterval, SCANFEED_DATABASE_SCHEMA: schema };
      return settingsWith({ ...env, SCANFEED_API_KEY: '', SCANFEED_API_KEY_FILE: key }, { one: 'a-key', two: 'a-key' });
    }),
    invalid: [],
  };
}

/** A set of feeds that only note when they start and stop. A feed that stops takes until `release`, unless `atOnce`. */
function setUp({ atOnce = true } = {}) {
  const events: string[] = [];
  const delays: number[] = [];
  const moved: string[] = [];
  const withOtherKey: string[] = [];
  const waiting: (() => void)[] = [];
  const failures: unknown[] = [];
  const fail = new Map<string, (error: unknown) => void>();
  const start: StartFeed = ({ feed }, signal, { firstPollInMs, hasMoved, hasOtherKey }): RunningFeed => {
    events.push(`start ${feed.name} ${feed.pollIntervalMs}`);
    if (hasMoved) moved.push(feed.name);
    if (hasOtherKey) withOtherKey.push(feed.name);
    delays.push(firstPollInMs);
    const stopped = new Promise<void>((resolve, reject) => {
      fail.set(feed.name, reject);
      const stop = () => {
        events.push(`stop ${feed.name}`);
        resolve();
      };
      signal.addEventListener('abort', () => (atOnce ? stop() : waiting.push(stop)));
    });
    return { name: feed.name, stopped } as RunningFeed;
  };
  const set = createFeedSet(start, (error) => failures.push(error));
  const names = () => set.running().map(({ name }) => name);
  const taken = () => events.splice(0);
  const release = () => {
    for (const stop of waiting.splice(0)) stop();
  };
  return { set, names, taken, delays, moved, withOtherKey, failures, fail, release };
}

it('starts added feeds, stops removed ones and restarts changed ones alone', async () => {
  const { set, names, taken } = setUp();
  set.follow(fileOf('a', 'b', 'c'));
  expect(taken()).toEqual(['start a 5000', 'start b 5000', 'start c 5000']);
  set.follow(fileOf('a', entry('b', '1s'), 'd'));
  await turn();
  expect(taken().sort()).toEqual(['start b 1000', 'start d 5000', 'stop b', 'stop c']);
  expect(names().sort()).toEqual(['a', 'b', 'd']);
  set.follow(fileOf('a', entry('b', '1s'), 'd'));
  await turn();
  expect(taken()).toEqual([]);
});

it('names the feeds that get another schema or key, and starts them as moved from then on', async () => {
  const { set, moved } = setUp();
  set.follow(fileOf('a', 'b', 'c'));
  const edited = fileOf({ ...entry('a'), schema: 'other' }, { ...entry('b'), key: 'two' }, entry('c', '1s'), 'd');
  expect(set.movedIn(edited)).toEqual(['a', 'b']);
  set.follow(edited);
  await turn();
  expect(moved.splice(0).sort()).toEqual(['a', 'b']);
  set.follow(fileOf({ ...entry('a', '1s'), schema: 'other' }, { ...entry('b'), key: 'two' }, entry('c', '1s')));
  await turn();
  expect(moved).toEqual(['a']);
});

it('names the feeds whose schema is that of an earlier feed with another key', () => {
  const { set, withOtherKey } = setUp();
  const own = { ...entry('c'), key: 'two', schema: 'other' };
  set.follow(fileOf('a', { ...entry('b'), key: 'two' }, own, { ...own, name: 'd' }));
  expect(withOtherKey).toEqual(['b']);
});

it('keeps a feed running when its entry becomes invalid, and changes it when the entry is valid again', async () => {
  const { set, names, taken } = setUp();
  set.follow(fileOf('a', 'b'));
  set.follow({
    ...fileOf('b'),
    invalid: [
      { name: 'a', mistakes: [] },
      { name: 'new', mistakes: [] },
    ],
  });
  await turn();
  expect(names()).toEqual(['a', 'b']);
  taken();
  set.follow(fileOf(entry('a', '2s'), 'b'));
  await turn();
  expect(taken()).toEqual(['stop a', 'start a 2000']);
});

it('starts a feed with its latest settings once it has stopped, when it changes again meanwhile', async () => {
  const { set, names, taken, release } = setUp({ atOnce: false });
  set.follow(fileOf('a'));
  set.follow(fileOf(entry('a', '1s')));
  set.follow(fileOf(entry('a', '2s')));
  await turn();
  expect(taken()).toEqual(['start a 5000']);
  release();
  await turn();
  expect(taken()).toEqual(['stop a', 'start a 2000']);
  set.follow(fileOf());
  set.follow(fileOf(entry('a', '3s')));
  release();
  await turn();
  expect(taken()).toEqual(['stop a', 'start a 3000']);
  expect(names()).toEqual(['a']);
});

it('runs what the last file says when the file is changed two hundred times at random', async () => {
  const { set, names, release } = setUp({ atOnce: false });
  let state = 7;
  const random = (below: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
  let last = fileOf();
  for (let edit = 0; edit < 200; edit += 1) {
    const chosen = ['a', 'b', 'c', 'd', 'e'].filter(() => random(2) === 0);
    last = fileOf(...chosen.map((name) => entry(name, `${1 + random(3)}s`)));
    set.follow(last);
    if (random(3) === 0) release();
    if (random(3) === 0) await turn();
  }
  for (let round = 0; round < 3; round += 1) {
    release();
    await turn();
  }
  expect(names().sort()).toEqual(last.feeds.map(({ feed }) => feed.name).sort());
});

it('spreads the starts of feeds when they are added or changed together', async () => {
  const { set, delays } = setUp();
  set.follow(fileOf('a', 'b', entry('c', '4s'), entry('d', '1m')));
  expect(delays.splice(0)).toEqual([0, 1_250, 2_000, 7_500]);
  set.follow(fileOf(entry('a', '1s'), 'b', entry('c', '1s'), entry('d', '1s'), entry('e', '1s')));
  await turn();
  expect(delays.splice(0).sort()).toEqual([0, 250, 500, 750]);
  set.follow(fileOf(entry('a', '1s'), entry('b', '2s'), entry('c', '1s'), entry('d', '1s'), entry('e', '1s')));
  await turn();
  expect(delays).toEqual([0]);
});

it('reports a feed that ends because of a bug, and does not start it again', async () => {
  const { set, names, taken, failures, fail } = setUp();
  set.follow(fileOf('a', 'b'));
  const bug = new TypeError('a bug');
  fail.get('a')?.(bug);
  await turn();
  expect(failures).toEqual([bug]);
  expect(names()).toEqual(['b']);
  expect(taken()).toEqual(['start a 5000', 'start b 5000']);
});

it('stops all feeds, also those that were about to start again', async () => {
  const { set, names, release } = setUp({ atOnce: false });
  set.follow(fileOf('a', 'b'));
  set.follow(fileOf(entry('a', '1s'), 'b'));
  const stopped = set.stop();
  release();
  await stopped;
  await turn();
  expect(names()).toEqual([]);
});
