import { expect, test } from 'vitest';
import type { CommonOptions } from '../../src/cli/context/common-options.js';
import { type Figures, type Progress, withProgress } from '../../src/cli/terminal/progress.js';
import { VirtualClock } from '../support/virtual-clock.js';

interface Terminal {
  readonly columns?: number;
  readonly options?: CommonOptions;
}

/** Runs work in virtual time, and returns what it wrote; on a terminal if there are `columns`. */
async function noted(
  work: (progress: Progress, clock: VirtualClock) => Promise<void>,
  { columns, options = {} }: Terminal = {},
  first: string | Figures = 'starting',
): Promise<string[]> {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const note = (text: string) => void lines.push(text);
  const io = { note, noteColumns: columns ?? null, clock };
  await clock.run(withProgress(io, options, first, (progress) => work(progress, clock)));
  return lines;
}

const read = (done: number, total?: number): Figures => ({ done, what: 'read', ...(total !== undefined && { total }) });

/** Ten things a second for two minutes, then two a second. */
async function slowsDown({ show }: Progress, clock: VirtualClock): Promise<void> {
  let done = 0;
  await clock.pause(500);
  for (let second = 0; second < 240; second += 1) {
    await clock.pause(1_000);
    done += second < 120 ? 10 : 2;
    show(read(done, 1_560));
  }
}

test('without a terminal the progress is a line every ten seconds, with the pace and the time left of the last minute', async () => {
  const lines = await noted(slowsDown);
  expect(lines.length).toBeGreaterThanOrEqual(23);
  expect(lines.length).toBeLessThanOrEqual(24);
  expect(lines[1]).toBe('[##----------------------] 12% 190 of 1560 read, 9.7/s, 2 min left\n');
  // Over all of the time it would be 7.1/s and 31.2 s.
  expect(lines[18]).toBe('[####################----] 85% 1338 of 1560 read, 2.0/s, 2 min left\n');
  expect(lines.join('')).not.toContain('0.0 s left');
});

test('the progress goes on while nothing is reported, and the rate falls to zero', async () => {
  const lines = await noted(
    async ({ show }, clock) => {
      await clock.pause(1_000);
      show(read(10, 100));
      await clock.pause(1_000);
      show(read(20, 100));
      await clock.pause(90_000);
    },
    {},
    read(0, 100),
  );
  expect(lines).toHaveLength(9);
  expect(lines[0]).toMatch(/20 of 100 read, 2\.0\/s, 40\.0 s left\n$/);
  expect(lines.at(-1)).toMatch(/20 of 100 read, 0\.0\/s, time left unknown\n$/);
});

test('the rate is left out until something is done, also when the work continues earlier work', async () => {
  const work = async ({ show }: Progress, clock: VirtualClock) => {
    show(read(40, 100));
    await clock.pause(15_000);
    show(read(60, 100));
    await clock.pause(10_000);
  };
  const [first, second] = await noted(work);
  expect(first).toMatch(/40 of 100 read\n$/);
  expect(second).toMatch(/60 of 100 read, 1\.0\/s, 40\.0 s left\n$/);
  const [json = ''] = await noted(work, { options: { json: true } });
  expect(JSON.parse(json)).toMatchObject({ done: 40, perSecond: null, secondsLeft: null });
});

test.each([
  ['the total is unknown', read(20)],
  ['more was done than was expected', read(20, 10)],
  [
    'the end of the delivery times is not in sight',
    { ...read(20), delivered: { from: null, upTo: null, until: new Date(0) } },
  ],
])('no time left and no bar is shown when %s', async (_, figures) => {
  const [line] = await noted(
    async ({ show }, clock) => {
      await clock.pause(9_000);
      show(figures);
      await clock.pause(1_001);
    },
    {},
    { ...figures, done: 0 },
  );
  expect(line).toMatch(/^20 .*read, 2\.0\/s, time left unknown\n$/);
});

test('the time left of a feed is that of its delivery times', async () => {
  const [from, until] = [new Date('2026-01-01'), new Date('2026-01-11')];
  const at = (done: number, day: number): Figures => ({
    ...read(done),
    delivered: { from, upTo: new Date(Date.UTC(2026, 0, day)), until },
  });
  const [line] = await noted(async ({ show }, clock) => {
    show(at(0, 1));
    await clock.pause(9_999);
    show(at(1_000, 6));
    await clock.pause(2);
  });
  expect(line).toBe(
    '[############------------] 50% 1000 read, 100/s, 10.0 s left, delivered up to 2026-01-06T00:00:00Z\n',
  );
});

test('work that reports nothing shows how long it has taken', async () => {
  const lines = await noted((_, clock) => clock.pause(21_000), {}, 'erasing 3 runs');
  expect(lines).toEqual(['erasing 3 runs, 10.0 s so far\n', 'erasing 3 runs, 20.0 s so far\n']);
});

test('--quiet shows no progress, but what has to be known', async () => {
  const work = async ({ show, say }: Progress, clock: VirtualClock) => {
    await clock.pause(20_000);
    show('reading', true);
    say('waiting for an hour');
    await clock.pause(20_000);
  };
  expect(await noted(work, { options: { quiet: true }, columns: 80 })).toEqual(['waiting for an hour\n']);
});

test('--json writes the same figures as lines of JSON, also on a terminal', async () => {
  const lines = await noted(slowsDown, { options: { json: true }, columns: 80 });
  expect(lines.map((line) => JSON.parse(line))[1]).toEqual({
    ...{ progress: 'read', done: 190, total: 1560, share: 190 / 1560 },
    ...{ perSecond: 180 / 18.5, secondsLeft: expect.closeTo((1560 - 190) / (180 / 18.5), 6) },
    ...{ deliveredUpTo: null, remark: null },
  });
});

test.each([
  ['on a terminal', 80, ['\r3 read\x1b[K', '\r\x1b[K', 'waiting for an hour\n']],
  ['in a pipe', undefined, ['3 read\n', 'waiting for an hour\n']],
])('what has to be known is said at once, right after a line of progress, %s', async (_, columns, said) => {
  const work = async ({ show, say }: Progress) => {
    show('3 read', true);
    say('waiting for an hour');
  };
  expect(await noted(work, columns === undefined ? {} : { columns })).toEqual(said);
});

test('a redrawn line stays within one row of the terminal, and is removed at the end', async () => {
  const work = async ({ show }: Progress) => show('x'.repeat(30), true);
  expect(await noted(work, { columns: 20 })).toEqual([`\r${'x'.repeat(19)}\x1b[K`, '\r\x1b[K']);
});
