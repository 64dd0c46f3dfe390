import type { EndClaim } from '../ports/index.js';

/** What a page shows about whether it is the end, before its commit. */
export interface Ending {
  /** What its commit may claim. */
  readonly claim: EndClaim;
  /** Whether it may be the end although its commit does not claim it; a later request for the same position decides. */
  readonly isUnclear: boolean;
  /** The page's position, if it may be the end although it has entries or no cursor. */
  readonly possibleEnd: PossibleEnd | null;
  /** The error of a request that would have shown it. Thrown after the commit, so that it does not withhold the entries. */
  readonly failure?: unknown;
}

/** The page is not the end. */
export const LEADS_FURTHER: Ending = { claim: 'no', isUnclear: false, possibleEnd: null };
/** The next request would not show it either. The next poll decides. */
export const IS_UNCLEAR: Ending = { claim: 'no', isUnclear: true, possibleEnd: null };
/** The page is the end, whatever follows it. */
export const IS_LAST: Ending = { claim: 'yes', isUnclear: false, possibleEnd: null };

/** The position of a dead end that may be the end of the feed. */
export interface PossibleEnd {
  readonly cursor: string | null;
  /** Whether fewer entries follow than were requested, including hidden ones; null: the service refused to list them, or a cache did. */
  readonly isShort: boolean | null;
  /** Number of entries to request next from the position. */
  readonly limit: number;
}

/**
 * What follows a page. `unclear`: it may be the end; a later request for the same position decides. `stuck`: its cursor does
 * not lead further. `fenced`: nothing was stored, because the lease was lost, or another position is stored.
 */
export type Next = 'more' | 'end' | 'unclear' | 'stuck' | 'fenced';
