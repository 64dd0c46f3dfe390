import { expect, it } from 'vitest';
import { watchFeedsFile } from '../../../src/daemon/feeds/watch-feeds-file.js';
import type { FeedsFile } from '../../../src/settings/feeds-file.js';
import { SettingsError } from '../../../src/settings/settings.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const EMPTY: FeedsFile = { feeds: [], invalid: [] };
const INVALID: FeedsFile = { feeds: [], invalid: [{ name: 'a', mistakes: [] }] };

/** Watches a file with these texts, one for each look, and returns the readings and refusals. The last text stays. */
async function watch(texts: readonly string[], meaningOf: (text: string) => FeedsFile, looks = texts.length) {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const events: string[] = [];
  let look = -1;
  const text = () => texts[Math.min(look, texts.length - 1)] ?? '';
  const watching = watchFeedsFile(
    {
      readText: async () => {
        look += 1;
        if (look === looks - 1) stop.abort();
        if (text() === 'missing') throw new Error('ENOENT');
        return text();
      },
      read: async () => meaningOf(text()),
      onRead: () => events.push(`read ${text()} at ${clock.monotonic() / 1000} s`),
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
  expect(await watch(['a', 'a', 'b', 'b', 'a', 'end'], () => EMPTY)).toEqual([
    'read a at 0 s',
    'read b at 10 s',
    'read a at 20 s',
  ]);
});

it('reads the file again after a minute when an entry is invalid, since its key file may exist by then', async () => {
  expect(await watch(['a'], () => INVALID, 14)).toEqual(['read a at 0 s', 'read a at 60 s']);
});

it('reports a file that cannot be used once, and continues when it can be used again', async () => {
  expect(await watch(['a', 'cut', 'cut', 'missing', 'missing', 'b', 'b'], refusing)).toEqual([
    'read a at 0 s',
    'refused: cut',
    'refused: missing',
    'read b at 25 s',
  ]);
});

it('does not pass on a file when the signal aborts while it is read', async () => {
  const stop = new AbortController();
  const events: string[] = [];
  await watchFeedsFile(
    {
      readText: async () => 'a',
      read: async () => {
        stop.abort();
        return EMPTY;
      },
      onRead: () => events.push('read'),
      onRefused: () => events.push('refused'),
    },
    new VirtualClock(),
    stop.signal,
  );
  expect(events).toEqual([]);
});

it('rejects when reading the file has a bug', async () => {
  const bug = new TypeError('a bug');
  const broken = () => {
    throw bug;
  };
  await expect(watch(['a', 'b'], broken)).rejects.toBe(bug);
});
