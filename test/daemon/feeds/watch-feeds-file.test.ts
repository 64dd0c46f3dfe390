import { expect, it } from 'vitest';
import { watchFeedsFile } from '../../../src/daemon/feeds/watch-feeds-file.js';
import type { FeedsFile } from '../../../src/settings/feeds-file.js';
import { SettingsError } from '../../../src/settings/settings.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const EMPTY: FeedsFile = { feeds: [], invalid: [], invalidKeyFiles: [], text: '' };
const UNMOVED = { movedIn: () => [], onMoved: () => {} };
const INVALID: FeedsFile = { ...EMPTY, invalid: [{ name: 'a', mistakes: [] }], invalidKeyFiles: ['/keys/a'] };

/**
 * Watches a file with these texts, the first of which was read at the start, and then one for each look. The last text stays.
 * Returns the readings and refusals.
 */
async function watch(
  texts: readonly string[],
  meaningOf: (text: string) => FeedsFile,
  { first = EMPTY, looks = texts.length, versionAt = (_seconds: number): string => '' } = {},
) {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const events: string[] = [];
  let look = 0;
  const text = () => texts[Math.min(look, texts.length - 1)] ?? '';
  const watching = watchFeedsFile(
    { ...first, text: text() },
    {
      readText: async () => {
        look += 1;
        if (look === looks - 1) stop.abort();
        if (text() === 'missing') throw new Error('ENOENT');
        return text();
      },
      read: async () => ({ ...meaningOf(text()), text: text() }),
      versionOf: async () => versionAt(clock.monotonic() / 1000),
      onRead: () => events.push(`read ${text()} at ${clock.monotonic() / 1000} s`),
      movedIn: (file) => (file.text.startsWith('moved') ? ['acme'] : []),
      onMoved: (feeds, ms) => events.push(`held ${text()} ${feeds} for ${ms / 1000} s`),
      onRefused: ({ mistakes }) => events.push(`refused: ${mistakes[0]?.reason}`),
    },
    clock,
    stop.signal,
  );
  await clock.run(watching);
  return events;
}

function refusing(text: string): FeedsFile {
  if (text === 'a' || text === 'b') return EMPTY;
  throw new SettingsError([{ variable: 'SCANFEED_FEEDS_FILE', value: null, allowed: 'a list', reason: text }]);
}

it('reads the file again when its text has changed', async () => {
  expect(await watch(['a', 'a', 'b', 'b', 'a', 'end'], () => EMPTY)).toEqual(['read b at 10 s', 'read a at 20 s']);
});

it('reads the file once more after the start when an entry is invalid, since its key file may exist by then', async () => {
  const options = { first: INVALID, looks: 40 };
  expect(await watch(['a'], () => INVALID, options)).toEqual(['read a at 5 s']);
});

it('reads the file again when the key file of an invalid entry appears or changes', async () => {
  const versionAt = (seconds: number) => {
    if (seconds < 130) throw new Error('ENOENT');
    return seconds < 250 ? 'one' : 'two';
  };
  expect(await watch(['a'], () => INVALID, { first: INVALID, looks: 80, versionAt })).toEqual([
    'read a at 5 s',
    'read a at 130 s',
    'read a at 250 s',
  ]);
});

it('reads a refused file again after a minute, and then every ten minutes, when it stays the same', async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const readAt: number[] = [];
  const watching = watchFeedsFile(
    EMPTY,
    {
      readText: async () => 'cut',
      read: async () => {
        readAt.push(clock.monotonic() / 1000);
        if (readAt.length === 4) stop.abort();
        return refusing('cut');
      },
      versionOf: async () => '',
      onRead: () => {},
      ...UNMOVED,
      onRefused: () => {},
    },
    clock,
    stop.signal,
  );
  await clock.run(watching);
  expect(readAt).toEqual([5, 65, 665, 1265]);
});

it('reports a file that cannot be used once, and continues when it can be used again', async () => {
  expect(await watch(['a', 'cut', 'cut', 'missing', 'missing', 'b', 'b'], refusing)).toEqual([
    'refused: cut',
    'refused: missing',
    'read b at 25 s',
  ]);
});

it('follows a file that moves a feed once it has not changed for a minute', async () => {
  const texts = ['a', 'moved', 'moved', 'moved again'];
  expect(await watch(texts, () => EMPTY, { looks: 30 })).toEqual([
    'held moved acme for 60 s',
    'held moved again acme for 60 s',
    'read moved again at 75 s',
  ]);
});

it('follows a file that moves no feed at once, even if the one before it did', async () => {
  expect(await watch(['a', 'moved', 'a', 'b'], () => EMPTY, { looks: 30 })).toEqual([
    'held moved acme for 60 s',
    'read a at 10 s',
    'read b at 15 s',
  ]);
});

it('holds a file that moves a feed again after a version that cannot be used', async () => {
  const meaningOf = (text: string) => (text === 'cut' ? refusing(text) : EMPTY);
  expect(await watch(['a', 'moved', 'cut', 'moved'], meaningOf, { looks: 30 })).toEqual([
    'held moved acme for 60 s',
    'refused: cut',
    'held moved acme for 60 s',
    'read moved at 75 s',
  ]);
});

it('does not pass on a file when the signal aborts while it is read', async () => {
  const stop = new AbortController();
  const clock = new VirtualClock();
  const events: string[] = [];
  const watching = watchFeedsFile(
    EMPTY,
    {
      readText: async () => 'changed',
      read: async () => {
        stop.abort();
        return EMPTY;
      },
      versionOf: async () => '',
      onRead: () => events.push('read'),
      ...UNMOVED,
      onRefused: () => events.push('refused'),
    },
    clock,
    stop.signal,
  );
  await clock.run(watching);
  expect(events).toEqual([]);
});

it('reads the file again when it changed back after it was read', async () => {
  const stop = new AbortController();
  const clock = new VirtualClock();
  const events: string[] = [];
  // At 5 s the file is changed twice: after the look, and back before the next one.
  const watching = watchFeedsFile(
    { ...EMPTY, text: 'a' },
    {
      readText: async () => 'b',
      read: async () => ({ ...EMPTY, text: events.length === 0 ? 'c' : 'b' }),
      versionOf: async () => '',
      onRead: ({ text }) => {
        events.push(text);
        if (events.length === 2) stop.abort();
      },
      ...UNMOVED,
      onRefused: () => events.push('refused'),
    },
    clock,
    stop.signal,
  );
  await clock.run(watching, 60_000);
  expect(events).toEqual(['c', 'b']);
});

it('rejects when reading the file has a bug', async () => {
  const bug = new TypeError('a bug');
  const broken = () => {
    throw bug;
  };
  await expect(watch(['a', 'b', 'end'], broken)).rejects.toBe(bug);
});
