import type { Scope } from './scope.js';

/** A line of `npm run bench`: something that was promised, and how it is measured. */
export interface Figure {
  /** What it is called on the command line. */
  readonly name: string;
  readonly title: string;
  /** Describes the contestants and the method, for readers of the report. */
  readonly method: string;
  /** Takes long; runs only when it is named. */
  readonly onDemand?: boolean;
  measure(bench: Bench): Promise<Findings>;
}

/** What a figure needs of the command. */
export interface Bench {
  readonly scope: Scope;
  /** Small histories and few repetitions: to see that it works, not how fast. */
  readonly quick: boolean;
  /** Tells how far it is, on a terminal. */
  note(text: string): void;
}

export interface Findings {
  readonly table: Table;
  readonly wanted: readonly Wanted[];
  readonly postgresVersion: string;
  readonly notes?: readonly string[];
}

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Wanted {
  /** `rate relative to a bare COPY: at least 0.5`. */
  readonly what: string;
  readonly measured: string;
  readonly met: boolean;
}

/** A ratio that is wanted to be no smaller than `least`. */
export function atLeast(what: string, measured: number, least: number): Wanted {
  return { what: `${what}: at least ${least}`, measured: measured.toFixed(2), met: measured >= least };
}

/** @param unit empty for a count */
export function atMost(what: string, measured: number, most: number, unit: string, digits = 0): Wanted {
  return {
    what: `${what}: at most ${most} ${unit}`.trimEnd(),
    measured: `${measured.toFixed(digits)} ${unit}`.trimEnd(),
    met: measured <= most,
  };
}

/** `17,300` */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}
