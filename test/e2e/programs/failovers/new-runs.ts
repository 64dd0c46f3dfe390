import type { Emulator } from '../../../../src/emulator/index.js';
import type { Listing } from './listing.js';

const TICK_MS = 100;
/** Each tick adds a run. Shares of ticks with a correction, a late run, and a correction somewhere in the history. */
const CORRECTION_SHARE = 0.4;
const LATE_SHARE = 0.2;
const OLD_SHARE = 0.1;
const LATE_BY_MS = 30_000;

/**
 * Adds runs and corrections to the feed, most of them at its end, some where cursors have passed, and notes them.
 * Returns a function that ends it.
 */
export function addNewRuns(
  emulator: Emulator,
  listing: Listing,
  historyPeriodMs: number,
  random: () => number,
): () => void {
  const addSome = () => {
    for (const version of emulator.appendCount(1)) listing.note(version, false);
    if (random() < CORRECTION_SHARE) correct(null);
    if (random() < LATE_SHARE) {
      const deliveredAt = Date.now() - 1_000 - random() * LATE_BY_MS;
      for (const version of emulator.appendRuns([{ deliveredAt: Math.floor(deliveredAt) }]))
        listing.note(version, true);
    }
    if (random() < OLD_SHARE) correct(Math.floor(Date.now() - 60_000 - random() * (historyPeriodMs - 120_000)));
  };
  const correct = (deliveredAt: number | null) => {
    const version = emulator.correctAny(deliveredAt === null ? { redelivery: 'ahead' } : { deliveredAt });
    if (version !== null) listing.note(version, deliveredAt !== null);
  };
  const timer = setInterval(addSome, TICK_MS);
  return () => clearInterval(timer);
}
