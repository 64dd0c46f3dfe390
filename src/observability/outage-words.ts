/** For what only a change of the program mends. */
export const BUG = 'this is a bug in scanfeed: please report this line, with those before it';

/** The messages of an outage. */
export interface OutageWords {
  /** Its beginning, by what will come of it. */
  readonly passing: string;
  readonly holding: string;
  readonly still: string;
  readonly over: string;
}

export const WORDS: OutageWords = {
  passing: 'failed, and will be tried again',
  holding: 'holding: this will not pass by itself',
  still: 'still failing',
  over: 'works again',
};
