import { describe, expect, it } from 'vitest';
import { DatabaseError } from '../../src/storage/errors.js';
import { createRivals } from '../../src/storage/rivals.js';

const HOUR = 3_600_000;
const refusal = (sqlstate: string) => new DatabaseError(sqlstate, 'data', 'data', 'refused');

function rivalsAt(time: { now: number }) {
  const rivals = createRivals(() => time.now);
  /** How a statement was written, try by try, that is refused so where rivals are not expected, or always. */
  const tries = async (refused?: { readonly sqlstate: string; readonly always?: boolean }) => {
    const expectations: boolean[] = [];
    const outcome = await rivals
      .allowFor(async (expected) => {
        expectations.push(expected);
        if (refused !== undefined && (refused.always || !expected)) throw refusal(refused.sqlstate);
        return 'written';
      })
      .catch((error: DatabaseError) => error.sqlstate);
    return { expectations, outcome };
  };
  return { ...rivals, tries };
}

describe('other writers of the same scans', () => {
  it('are not expected until one is met, then for an hour', async () => {
    const time = { now: 0 };
    const { tries } = rivalsAt(time);
    const met = { sqlstate: '23505' };
    const raised = { sqlstate: 'SF002' };
    expect(await tries()).toEqual({ expectations: [false], outcome: 'written' });
    expect(await tries(met)).toEqual({ expectations: [false, true], outcome: 'written' });
    time.now = HOUR - 1;
    expect(await tries(met)).toEqual({ expectations: [true], outcome: 'written' });
    time.now = HOUR;
    expect(await tries()).toEqual({ expectations: [false], outcome: 'written' });
    expect(await tries(raised)).toEqual({ expectations: [false, true], outcome: 'written' });
  });

  it('are expected for longer where one is met that was expected', async () => {
    const time = { now: 0 };
    const { met, tries } = rivalsAt(time);
    met();
    time.now = HOUR - 1;
    met();
    time.now = 2 * HOUR - 2;
    expect((await tries()).expectations).toEqual([true]);
  });

  it('are no reason to write again what is refused for another reason, or once more', async () => {
    const { tries } = rivalsAt({ now: 0 });
    expect(await tries({ sqlstate: '22P05' })).toEqual({ expectations: [false], outcome: '22P05' });
    expect(await tries({ sqlstate: '40001' })).toEqual({ expectations: [false], outcome: '40001' });
    expect(await tries({ sqlstate: '23514' })).toEqual({ expectations: [false], outcome: '23514' });
    expect(await tries({ sqlstate: '23505', always: true })).toEqual({ expectations: [false, true], outcome: '23505' });
    expect(await tries({ sqlstate: '23505', always: true })).toEqual({ expectations: [true], outcome: '23505' });
  });
});
