import type { Fields } from '../support/entries.js';
import { runJson, type Version } from './delivery.js';
import type { Choices } from './random-choices.js';

interface Shown {
  readonly version: Version;
  /** Time from which the single-run endpoint shows the revision. */
  readonly from: number;
  /** Time until which the endpoint gives an unusable response. */
  readonly busyUntil: number;
  readonly busyAnswer: Fields | null;
}

/** Unusable responses of a busy run; null: 404. A failed run has no data, so a response without data is not unusable. */
const BUSY: readonly (Fields | null)[] = [{ status: 'processing', data: undefined }, null];
const BUSY_WITHOUT_DATA: Fields = { data: undefined, markdown: undefined, resultTruncated: true };

function busyAnswersOf({ status }: Version): readonly (Fields | null)[] {
  return status === 'completed' ? [...BUSY, BUSY_WITHOUT_DATA] : BUSY;
}

/** The runs as the single-run endpoint shows them, which may be earlier or later than in the feed. */
export class RecognizedRuns {
  readonly scanIds: string[] = [];
  readonly #shown = new Map<string, Shown[]>();

  /** @param sparse whether responses omit optional fields */
  constructor(private readonly sparse: boolean) {}

  newest(scanId: string): Version | undefined {
    return this.#shown.get(scanId)?.at(-1)?.version;
  }

  show(version: Version, from: number, choices: Choices): void {
    const before = this.#shown.get(version.scanId);
    const busyUntil = choices.chance(0.1) ? from + choices.between(0, 60_000) : from;
    const shown = { version, from, busyUntil, busyAnswer: choices.pick(busyAnswersOf(version)) };
    if (before !== undefined) before.push(shown);
    else {
      this.#shown.set(version.scanId, [shown]);
      this.scanIds.push(version.scanId);
    }
  }

  /** Returns the text of the response; null: 404. */
  answer(scanId: string, now: number, markdown: boolean): string | null {
    const shown = this.#shown.get(scanId)?.findLast(({ from }) => from <= now);
    if (shown === undefined) return null;
    const { version, busyUntil, busyAnswer } = shown;
    if (busyUntil <= now) return runJson(version, markdown, this.sparse);
    return busyAnswer === null ? null : runJson(version, markdown, this.sparse, busyAnswer);
  }

  /** Returns whether a shown revision correctly has no markdown. */
  hasNoMarkdown(scanId: string, revision: number): boolean {
    return this.#shown.get(scanId)?.some(({ version }) => version.revision === revision && version.bare) ?? false;
  }

  /** Returns whether the feed entries of a shown revision leave out the test mode. */
  omitsTestMode(scanId: string, revision: number): boolean {
    return (
      this.#shown.get(scanId)?.some(({ version }) => version.revision === revision && version.omitsTestMode) ?? false
    );
  }

  /** Returns whether a revision cannot be stored. Such a run may stay pending and is requested at each delivery. */
  isUnstorable(scanId: string): boolean {
    return (this.#shown.get(scanId) ?? []).some(({ version }) => version.poisonous && version.status === 'completed');
  }
}
