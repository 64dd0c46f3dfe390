import type { FeedFilters } from '../../core/feed-filters.js';
import type { FieldPlaces } from '../../core/json/field-places.js';
import type { JsonFacts } from '../../core/json/scan.js';

export type { FeedFilters } from '../../core/feed-filters.js';

/** Where a feed page starts (interface 4.2: `cursor` and `since` exclude each other). */
export type FeedStart =
  | {
      /** Where the page with this `nextCursor` ended. */
      readonly cursor: string;
    }
  | {
      /** A delivery time. */
      readonly since: Date;
    }
  | {
      /** The beginning of the history. */
      readonly beginning: true;
    };

/** A request for one page of the feed (interface 4.2). */
export interface FeedRequest {
  /** The filters. */
  readonly filters: FeedFilters;
  /** Where the page starts. */
  readonly start: FeedStart;
  /** Maximum number of entries, 1 to 200. */
  readonly limit: number;
  /** Whether to include the recognized markdown. */
  readonly markdown: boolean;
}

/** Limits on the body of one response. */
export interface BodyBounds {
  /** Maximum size, bytes, decompressed. */
  readonly maxBytes: number;
  /** Expected size, bytes. */
  readonly expectedBytes: number;
  /**
   * Called before the response takes this much memory in total. Until it resolves, the response is not read further, and its
   * timeout does not run.
   */
  readonly reserve: (bytes: number) => Promise<void>;
}

/** A response body that is JSON of the interface's outer shape; its entries are not checked. */
export interface RawPage {
  /** The body as received (decompressed). */
  readonly body: Uint8Array;
  /**
   * The parsed entries, in which large values that no decision depends on are empty. Only for decisions, not for storing:
   * JavaScript numbers may have lost digits.
   */
  readonly items: readonly unknown[];
  /** Findings of the scan of the body: nesting, unusual numbers and escapes. */
  readonly facts: JsonFacts;
  /** The places of the fields of each entry in the body. */
  readonly places: FieldPlaces;
  /** Null if the service sent none; empty if it sent something that is not a cursor, or is too long to be read. */
  readonly nextCursor: string | null;
  /** The `Date` header, if sent, whole seconds. */
  readonly serviceDate: Date | null;
  /** Maximum age of the response if caches may have kept it, milliseconds; default 0. */
  readonly ageMs?: number;
  /** The cache that gave the response, if it shows one. */
  readonly cache?: AnsweringCache | null;
}

/** A cache between this process and the service, as its response shows it. */
export interface AnsweringCache {
  /** The header that shows it, such as `Age: 17`. */
  readonly evidence: string;
  /** Its name by `Via` or `Server`; null if there is neither. */
  readonly name: string | null;
}

/** A single run as received (interface 4.3). */
export interface RawRun {
  /** The body as received (decompressed). */
  readonly body: Uint8Array;
  /** The parsed object, as with {@link RawPage}. */
  readonly run: Readonly<Record<string, unknown>>;
  /** Findings of the scan of the body. */
  readonly facts: JsonFacts;
  /** The places of its fields in the body. */
  readonly places: FieldPlaces;
}

/** Reads pages of the feed. Rejects with a {@link Failure} or with the signal's reason. */
export interface PageService {
  /** @param whileQueued wraps the wait for the turn of the request, if the rate of requests is limited */
  readPage(
    request: FeedRequest & Partial<BodyBounds>,
    signal: AbortSignal,
    whileQueued?: (turn: Promise<void>) => Promise<void>,
  ): Promise<RawPage>;
}

/** The service, as the engine uses it. Requests reject with a {@link Failure} or with the signal's reason. */
export interface FeedService extends PageService {
  readRun(
    scanId: string,
    options: { readonly markdown: boolean } & Partial<BodyBounds>,
    signal: AbortSignal,
  ): Promise<RawRun>;
  /** Resolves when the key differs from the present one, or the signal aborts. Undefined: the key never changes. */
  readonly keyChanged?: ((signal: AbortSignal) => Promise<void>) | undefined;
}
