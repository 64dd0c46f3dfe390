import type { Fault, FaultInput } from './fault-types.js';

/** Settings that can be changed while the emulator runs. By default there are no faults, new runs or corrections. */
export interface Switches {
  /** Pause before every response of the service. */
  readonly latencyMs: number;
  /** Share of new runs that fail. */
  readonly failureShare: number;
  /** Share of completed runs whose data or markdown the feed omits, regardless of its size. */
  readonly truncatedShare: number;
  /** Share of new generated runs in the environment test. */
  readonly testEnvironmentShare: number;
  /** New runs per second. */
  readonly newRunsPerSecond: number;
  /** Corrections and retries per minute, preferably of recent runs. */
  readonly correctionsPerMinute: number;
  /** Processing time of a submission. */
  readonly processingMs: number;
  /** Share of new generated runs that become visible late, behind cursors. */
  readonly lateShare: number;
  /** Delay with which they become visible. */
  readonly lateByMs: number;
  /** Where a new revision appears: ahead of stored cursors, behind them, or at its old place with a new delivery time. */
  readonly redelivery: 'ahead' | 'behind' | 'in-place';
  /** Whether the entry of a superseded revision is removed or kept. */
  readonly superseded: 'removed' | 'kept';
  /** Whether nextCursor stays the same at the end of the feed or changes with every poll. */
  readonly cursors: 'stable' | 'moving';
  /** Whether a cursor is rejected with other filters than those it was issued with. */
  readonly cursorFilters: 'free' | 'bound';
  /** Minimum length of a cursor, in characters. */
  readonly cursorLength: number;
  /** Status of the response to a rejected cursor, or reset: the connection is destroyed. */
  readonly cursorRefusal: '400' | '404' | '410' | '414' | '422' | '431' | 'reset';
  /** NextCursor of a page that reaches the end of the feed. */
  readonly endCursor: 'sent' | 'null' | 'absent';
  /** The time of a run that since is compared with. */
  readonly sinceMeaning: 'delivered' | 'completed' | 'submitted';
  /** Whether since includes runs delivered at exactly that time. */
  readonly sinceBoundary: 'inclusive' | 'exclusive';
  /** Fields of single-run responses: all, or the required ones and the result. */
  readonly runFields: 'all' | 'required';
  /** ResultTruncated of single-run responses: false, or that of the feed entry although the response is complete. */
  readonly runFlag: 'cleared' | 'kept';
  /** Whether partnerTestMode is always sent, only when true, or only in the first revision of a run. */
  readonly testModeField: 'always' | 'when-true' | 'first-revision';
  /** Maximum size of the data JSON and of the markdown in the feed. */
  readonly inlineLimitBytes: number;
  /** Maximum size of a PDF. */
  readonly maxFileBytes: number;
  /** Submissions without an Idempotency-Key are rejected. */
  readonly idempotencyKeyRequired: boolean;
  /** Document types without a ready schema in an environment. */
  readonly notReadySchemas: readonly { readonly documentType: string; readonly environment: 'prod' | 'test' }[];
  /** Status code of submissions to them. */
  readonly notReadyStatus: number;
  /** Fields of the response to a submission: all, or scanId alone. */
  readonly submissionFields: 'all' | 'scan-id';
  /** Start of statusUrl and Location; null for the address of the request. */
  readonly statusUrlBase: string | null;
  /** Time by which the service's clock is ahead of the machine's. */
  readonly clockOffsetMs: number;
  /** Whether responses have a Date header. */
  readonly dateHeader: boolean;
  /** Cache-Control header of all responses; null for none. */
  readonly cacheControl: string | null;
  /** Maximum number of runs that a feed request examines; a page can then be short before the end. */
  readonly scanLimit: number;
  /** Active faults. */
  readonly faults: readonly Fault[];
}

type OptionalSwitches = { readonly [Name in Exclude<keyof Switches, 'faults'>]?: Switches[Name] | undefined };

/** A change of switches: missing ones stay the same, `faults` replaces the whole list. */
export interface SwitchesPatch extends OptionalSwitches {
  /** Active faults. */
  readonly faults?: readonly FaultInput[] | undefined;
}
