import { describe, expect, it } from 'vitest';
import { createRecentCursors } from '../../../src/sync/page/cursors.js';

describe('recent cursors', () => {
  it.each([1, 3, 200])('find a circle of %i cursors at its first repetition', (length) => {
    const recent = createRecentCursors();
    for (let step = 0; step < length; step += 1) expect(recent.remember(`cursor-${step}`)).toBe(false);
    expect(recent.remember('cursor-0')).toBe(true);
  });

  it.each([201, 1_000, 5_000])('find a circle of %i cursors within three rounds', (length) => {
    const recent = createRecentCursors();
    const steps = Array.from({ length: 3 * length }, (_, step) => recent.remember(`cursor-${step % length}`));
    expect(steps.slice(0, length)).not.toContain(true);
    expect(steps).toContain(true);
  });

  it('find none while every cursor is new', () => {
    const recent = createRecentCursors();
    for (let step = 0; step < 10_000; step += 1) expect(recent.remember(`cursor-${step}`)).toBe(false);
  });
});
