import type { Course } from './simulate.js';

/** What histories were made of, together. */
export type Tally = Record<'seeds' | Exclude<keyof Course, 'seed'>, number>;

/** What a process reports of a batch of seeds; after a failure it has left the rest of the batch. */
export interface ShardReport {
  readonly tally: Tally;
  readonly failure: { readonly seed: number; readonly message: string } | null;
}

export const NO_TALLY: Tally = { seeds: 0, commits: 0, crashes: 0, resets: 0, rows: 0 };

export function sum(tally: Tally, { seeds, commits, crashes, resets, rows }: Tally): Tally {
  return {
    seeds: tally.seeds + seeds,
    commits: tally.commits + commits,
    crashes: tally.crashes + crashes,
    resets: tally.resets + resets,
    rows: tally.rows + rows,
  };
}

export function told({ seeds, commits, crashes, resets, rows }: Tally, seconds: number, of: number): string {
  const count = (value: number) => value.toLocaleString('en');
  return `${count(seeds)} of ${count(of)} histories, ${count(commits)} commits, ${count(crashes)} crashes, ${count(resets)} cursors left, ${count(rows)} rows: ${(seeds / seconds).toFixed(0)} seeds/s`;
}
