import { factsOf, makeVersion, type RunSource } from './runs.js';
import type { Switches } from './switch-types.js';
import type { Timeline } from './timeline.js';

export type GeneratedLane = ReturnType<typeof generatedLane>;

/** Returns the generated runs as the sequence reads them, see {@link Timeline}. */
export function generatedLane(
  source: RunSource,
  timeline: Timeline,
  superseded: ReadonlyMap<number, Switches['superseded']>,
) {
  return {
    countAt: (nowMs: number) => timeline.countAt(nowMs),
    /** The number of the first run after this place, among the first `count`. */
    firstAfter: (place: { readonly at: number; readonly order: number }, count: number) =>
      timeline.firstAfter(place.at, place.order, count),
    deliveredAt: (number: number) => timeline.deliveredAt(number),
    /** Returns false while the run is late, or if its entry was removed. */
    visible: (number: number, nowMs: number) =>
      superseded.get(number) !== 'removed' && timeline.run(number).visibleAt <= nowMs,
    facts: (number: number) => factsOf(source, timeline.run(number).shares, number),
    version: (number: number) => {
      const { submittedAt, deliveredAt, shares } = timeline.run(number);
      const times = { submittedAt, completedAt: deliveredAt, deliveredAt };
      return makeVersion(source, { number, revision: 1, facts: factsOf(source, shares, number), ...times });
    },
  };
}
