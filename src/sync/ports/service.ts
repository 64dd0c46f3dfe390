/** Read-time filters of the feed (interface 4.2). Always sent, never left to defaults. */
export interface FeedFilters {
  readonly status: readonly ('completed' | 'failed')[];
  readonly environment: 'prod' | 'test' | 'all';
  readonly documentType: string | null;
}

/** Where a feed page starts (interface 4.2: `cursor` and `since` exclude each other). */
export type FeedStart = { readonly cursor: string } | { readonly since: Date } | { readonly beginning: true };

export interface FeedRequest {
  readonly filters: FeedFilters;
  readonly start: FeedStart;
  /** 1 to 200. */
  readonly limit: number;
  readonly markdown: boolean;
}

/** A response body that is JSON of the interface's outer shape; its entries are not checked. */
export interface RawPage {
  /** The body as received (decompressed). */
  readonly body: Uint8Array;
  /** The body as text; where it is not valid UTF-8, with U+FFFD. */
  readonly text: string;
  readonly validUtf8: boolean;
  /** The parsed entries. For steering only: JavaScript numbers may have lost digits. */
  readonly items: readonly unknown[];
  /** Null where the service sent none, or an empty one. */
  readonly nextCursor: string | null;
  /** The `Date` header, if sent, whole seconds. */
  readonly serviceDate: Date | null;
}

/** A single run as received (interface 4.3). */
export interface RawRun {
  readonly body: Uint8Array;
  readonly text: string;
  readonly validUtf8: boolean;
  /** The parsed object. For steering only. */
  readonly run: Readonly<Record<string, unknown>>;
}

/** The service, as the engine uses it. Both reject with a {@link Trouble} or with the signal's reason. */
export interface FeedService {
  readPage(request: FeedRequest, signal: AbortSignal): Promise<RawPage>;
  readRun(scanId: string, options: { markdown: boolean; maxBytes: number }, signal: AbortSignal): Promise<RawRun>;
}
