import { describe, expect, test } from 'vitest';
import {
  type ListedFeed,
  listFeeds,
  searchFeeds,
  totalsOf,
  worstFirst,
} from '../../src/observability/status-page/feed-list.js';
import { stateOfAll } from '../../src/observability/status-page/feeds-state.js';
import type { StatusReport } from '../../src/observability/status-page/status-report.js';
import { caughtUp, failing, standingBy, starting } from '../support/status-page/states.js';

const { report } = caughtUp();
const { currentErrors: held } = failing().report;
const currentErrors = held.map((error) => ({ ...error, held: false }));
const stuckSince = '2026-01-01T14:00:00.000Z';

const running = (name: string, changed: Partial<StatusReport> = {}): ListedFeed => ({
  name,
  report: { ...report, ...changed, feed: name },
  mistakes: [],
});
const invalid = (name: string): ListedFeed => ({ name, report: null, mistakes: ['line 1: unknown key "a"'] });
const namesOf = (feeds: readonly ListedFeed[]) => feeds.map(({ name }) => name);

describe('the list of feeds', () => {
  test('has each name once when an invalid entry belongs to a running feed', () => {
    const entries = [
      { name: 'a', mistakes: ['one'] },
      { name: 'c', mistakes: ['two'] },
      { name: 'a', mistakes: ['three'] },
    ];
    expect(
      listFeeds(
        [
          { name: 'a', report },
          { name: 'b', report },
        ],
        entries,
      ),
    ).toEqual([
      { name: 'a', report, mistakes: ['one', 'three'] },
      { name: 'b', report, mistakes: [] },
      { name: 'c', report: null, mistakes: ['two'] },
    ]);
  });

  test('puts invalid entries, held, failing and stuck feeds, open quarantine and unknown freshness before the others, in this order', () => {
    const ordered = [
      invalid('invalid'),
      { ...running('invalid-and-running'), mistakes: ['line 2: a mistake'] },
      running('held', { currentErrors: [...currentErrors, ...held], lagSeconds: 0 }),
      running('failing-and-stuck', { currentErrors, stuckSince, lagSeconds: 9 }),
      running('failing', { currentErrors, lagSeconds: 0 }),
      running('stuck', { stuckSince, lagSeconds: 0 }),
      running('quarantine', { quarantinedEntries: 1, lagSeconds: 0 }),
      running('unknown', { lagSeconds: null }),
      running('slow', { lagSeconds: 3_600 }),
      running('quick', { lagSeconds: 0 }),
    ];
    expect(namesOf(worstFirst([...ordered].reverse()))).toEqual(namesOf(ordered));
    expect(namesOf(worstFirst(ordered))).toEqual(namesOf(ordered));
  });

  test('puts the highest lag first among feeds in the same state, an unknown lag before all', () => {
    const lags = [2, null, 10, 0.5];
    const failed = lags.map((lagSeconds) => running(`failing ${lagSeconds}`, { currentErrors, lagSeconds }));
    expect(namesOf(worstFirst(failed))).toEqual(['failing null', 'failing 10', 'failing 2', 'failing 0.5']);
  });

  test('sorts by name when nothing else differs, in the same order whatever the order of arrival', () => {
    const feeds = ['b', 'a10', 'B', 'a9', 'a'].map((name) => running(name));
    const sorted = ['B', 'a', 'a10', 'a9', 'b'];
    expect(namesOf(worstFirst(feeds))).toEqual(sorted);
    expect(namesOf(worstFirst([...feeds].reverse()))).toEqual(sorted);
    const unknown = ['b', 'a'].map((name) => running(name, { lagSeconds: null }));
    expect(namesOf(worstFirst(unknown))).toEqual(['a', 'b']);
  });

  test.each([
    ['ACME', ['acme', 'Acme.test', 'my-acme']],
    ['e.t', ['Acme.test']],
    ['.*', []],
    ['other', ['other']],
  ])('finds %s in names, in upper or lower case and without patterns', (search, names) => {
    const feeds = [...['acme', 'Acme.test', 'my-acme'].map((name) => running(name)), invalid('other')];
    expect(namesOf(searchFeeds(feeds, search))).toEqual(names);
  });

  test('counts feeds by state, and finds the worst lag', () => {
    const feeds = [
      running('a', { lagSeconds: 7 }),
      running('b', { lagSeconds: 60, caughtUp: false, currentErrors, stuckSince }),
      running('c', { ...standingBy().report, lagSeconds: 8, stuckSince }),
      running('d', starting().report),
      { ...running('e', { lagSeconds: 1 }), mistakes: ['line 3: a mistake'] },
      invalid('f'),
    ];
    expect(totalsOf(feeds)).toEqual({
      feeds: 6,
      invalid: 2,
      failing: 1,
      stuck: 1,
      needAttention: 4,
      needAction: 2,
      starting: 1,
      leading: 3,
      caughtUp: 2,
      withUnknownLag: 2,
      worst: { name: 'b', lagSeconds: 60 },
    });
  });
});

describe('the state of all feeds', () => {
  const stateOf = (...feeds: readonly ListedFeed[]) => stateOfAll(totalsOf(feeds));

  test.each<[string, string, readonly ListedFeed[]]>([
    ['1 feed needs attention', 'warn', [running('a'), running('b', { currentErrors })]],
    ['Action required for 1 feed', 'bad', [running('a', { stuckSince }), running('b', { currentErrors: held })]],
    ['2 feeds need attention', 'warn', [running('a', { stuckSince }), running('b', { quarantinedEntries: 3 })]],
    ['Starting', 'calm', [running('a'), running('b', starting().report)]],
    ['Standing by', 'calm', [running('a', standingBy().report)]],
    ['Catching up', 'busy', [running('a'), running('b', { caughtUp: false })]],
    ['Caught up', 'good', [running('a'), running('b', standingBy().report)]],
    ['No feeds', 'calm', []],
  ])('is %s in the tone %s', (headline, tone, feeds) => {
    expect(stateOf(...feeds)).toMatchObject({ headline, tone });
  });

  test.each<[string, readonly ListedFeed[]]>([
    ['The data of every feed is complete up to 1 min 5 s ago.', [running('a'), running('b', { lagSeconds: 65 })]],
    [
      'The freshness of 1 feed is not known. The data of the others is complete up to 1.2 s ago.',
      [running('a'), invalid('b')],
    ],
    ['The freshness of the data is not known.', [running('a', starting().report)]],
    ['The feeds file lists none.', []],
  ])('is followed by the freshness: %s', (sentence, feeds) => {
    expect(stateOf(...feeds).sentence).toBe(sentence);
  });

  test('is followed by the number of feeds that this process leads', () => {
    const { leader } = stateOf(running('a'), running('b', standingBy().report));
    expect(leader).toBe('This process leads 1 of 2 feeds.');
  });
});
