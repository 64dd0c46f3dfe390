import { describe, expect, it } from 'vitest';
import { createPaceMeter } from '../../../src/sync/progress/reading-pace.js';

const HOUR = 3_600_000;

describe('the pace of a reading', () => {
  it('is unknown before a second has passed', () => {
    const meter = createPaceMeter();
    expect(meter.measure(0, 200, 10 * HOUR)).toBeNull();
    expect(meter.measure(900, 200, 9 * HOUR)).toBeNull();
  });

  it('is entries per second, and an estimate of the remaining time', () => {
    const meter = createPaceMeter();
    meter.measure(0, 200, 10 * HOUR);
    expect(meter.measure(2_000, 200, 9 * HOUR)).toEqual({ entriesPerSecond: 100, secondsLeft: 18 });
    expect(meter.measure(4_000, 600, 5 * HOUR)).toEqual({ entriesPerSecond: 200, secondsLeft: 4 });
  });

  it('has no remaining time while the end does not get closer or is unknown', () => {
    const meter = createPaceMeter();
    meter.measure(0, 10, null);
    expect(meter.measure(2_000, 10, null)).toEqual({ entriesPerSecond: 5, secondsLeft: null });
    const falling = createPaceMeter();
    falling.measure(0, 10, HOUR);
    expect(falling.measure(2_000, 10, 2 * HOUR)).toEqual({ entriesPerSecond: 5, secondsLeft: null });
  });

  it('keeps the remaining time when a page does not show it, and has none after the expected end', () => {
    const meter = createPaceMeter();
    meter.measure(0, 10, 4 * HOUR);
    meter.measure(2_000, 10, 2 * HOUR);
    expect(meter.measure(4_000, 10, null)).toEqual({ entriesPerSecond: 5, secondsLeft: 4 });
    expect(meter.measure(6_000, 10, -1)).toMatchObject({ secondsLeft: null });
  });

  it('has no remaining time in the last second, so that no reading has 0 s left while it lasts', () => {
    const meter = createPaceMeter();
    meter.measure(0, 10, 10_000);
    expect(meter.measure(5_000, 10, 1_800)).toMatchObject({ secondsLeft: expect.closeTo(1.098, 3) });
    expect(meter.measure(9_000, 10, 500)).toMatchObject({ secondsLeft: null });
    expect(meter.measure(30_000, 10, 0)).toMatchObject({ secondsLeft: null });
  });

  it('is measured over the last minute', () => {
    const meter = createPaceMeter();
    let pace = null;
    for (let second = 0; second <= 60; second += 1) pace = meter.measure(second * 1_000, 10, null);
    for (let second = 61; second <= 130; second += 1) pace = meter.measure(second * 1_000, 50, null);
    expect(pace?.entriesPerSecond).toBeCloseTo(50, 5);
  });

  it('counts pages that follow each other quickly', () => {
    const meter = createPaceMeter();
    let pace = null;
    for (let page = 0; page <= 10_000; page += 1) pace = meter.measure(page * 10, 1, (10_000 - page) * HOUR);
    expect(pace?.entriesPerSecond).toBeCloseTo(100, 0);
    expect(pace?.secondsLeft).toBeNull();
  });
});
