import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { createPacedAnswers } from '../../src/observability/admin/paced-answers.js';
import { textAnswer } from '../../src/observability/admin/single-request-server.js';

/** Paced answers, each of which takes 40 ms to render. A test ends the pauses. */
function setUp() {
  let now = 0;
  const rests: { ms: number; end: () => void }[] = [];
  const sleep = (ms: number) => new Promise<void>((resolve) => rests.push({ ms, end: resolve }));
  const answer = createPacedAnswers({ ...systemClock, monotonic: () => now, sleep }, new AbortController().signal);
  const rendered: string[] = [];
  const ask = (key: string, tookMs = 40, isWanted = () => true) =>
    answer({
      ...{ key, isWanted },
      render: () => {
        rendered.push(key);
        now += tookMs;
        return textAnswer(200, `${key} ${rendered.length}`);
      },
    }).then(({ status, body }) => [status, String(body)]);
  return { ask, rests, rendered };
}

describe('paced answers', () => {
  test('pause after each one for nineteen times as long as it took, at most two seconds', async () => {
    const { ask, rests } = setUp();
    await ask('/metrics');
    await expect.poll(() => rests.map(({ ms }) => ms)).toEqual([760]);
    rests[0]?.end();
    await ask('/metrics', 500);
    await expect.poll(() => rests.map(({ ms }) => ms)).toEqual([760, 2_000]);
  });

  test('are shared by equal requests that wait, and rendered after they arrived', async () => {
    const { ask, rests, rendered } = setUp();
    expect(await ask('/metrics')).toEqual([200, '/metrics 1\n']);
    const waiting = Promise.all([ask('/metrics'), ask('/metrics')]);
    await expect.poll(() => rests).toHaveLength(1);
    expect(rendered).toHaveLength(1);
    rests[0]?.end();
    expect(await waiting).toEqual([
      [200, '/metrics 2\n'],
      [200, '/metrics 2\n'],
    ]);
  });

  test('continue after one that cannot be rendered', async () => {
    const clock = { ...systemClock, monotonic: () => 0, sleep: async () => {} };
    const answer = createPacedAnswers(clock, new AbortController().signal);
    const request = { key: '/', isWanted: () => true };
    await expect(answer({ ...request, render: () => Promise.reject(new Error('a bug')) })).rejects.toThrow('a bug');
    expect((await answer({ ...request, render: () => textAnswer(200, 'fine') })).status).toBe(200);
  });

  test('take no turn for clients that are gone, unless another one waits for the same', async () => {
    const { ask, rests, rendered } = setUp();
    await ask('/');
    const gone = [ask('/a', 40, () => false), ask('/b', 40, () => false), ask('/b')];
    await expect.poll(() => rests).toHaveLength(1);
    rests[0]?.end();
    expect((await gone[0])?.[0]).toBe(503);
    expect(await gone[1]).toEqual([200, '/b 2\n']);
    expect(rendered).toEqual(['/', '/b']);
  });

  test('refuse further requests when too many different ones wait', async () => {
    const { ask } = setUp();
    const answers = Array.from({ length: 129 }, (_, index) => ask(`/?search=${index}`));
    expect((await answers.at(-1))?.[0]).toBe(503);
  });
});
