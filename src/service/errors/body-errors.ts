import { ServiceError } from './service-error.js';

/**
 * The response is not JSON: another content type, HTML, 204, or an empty body. The message has its size and hash, never its
 * content.
 */
export class NotJsonError extends ServiceError {
  readonly kind = 'not_json';
  readonly action = 'hold';
  constructor(
    override readonly status: number,
    reason: string,
    body: { readonly size: number; readonly sha256Prefix: string },
  ) {
    super(
      `the service answered ${status} with a response that is not JSON: ${reason} (${body.size} bytes, sha256 ${body.sha256Prefix}…); check the base URL and any proxy in between`,
    );
  }
}

/** The response is JSON that does not match the interface. The message has places and fields, never values. */
export class WrongShapeError extends ServiceError {
  readonly kind = 'wrong_shape';
  readonly action = 'hold';
  constructor(
    override readonly status: number,
    /** The part that does not match: `the page`, `entry 3 of the page`, … */
    readonly place: string,
    /** The fields that do not match, or what is wrong with one. */
    readonly fields: readonly string[],
  ) {
    super(
      `the service answered ${status}, but ${place} does not match the interface: ${fields.join(', ')}; ask its operators what changed, or use a newer release of scanfeed`,
    );
  }
}

/** The decompressed body exceeds the maximum size. It is discarded. */
export class BodyTooLargeError extends ServiceError {
  readonly kind = 'too_large';
  readonly action = 'hold';
  constructor(
    /** The maximum, bytes, if it is the client's; undefined if it is that of its dispatcher. */
    readonly maxBytes: number | undefined,
  ) {
    const allowed = maxBytes === undefined ? 'allowed' : `the ${maxBytes} bytes allowed`;
    super(`the response is larger than ${allowed}; if it is a page of the feed, lower the page limit`);
  }
}

/** The response has more JSON values than fit into memory. They were not created. */
export class TooManyValuesError extends ServiceError {
  readonly kind = 'too_many_values';
  readonly action = 'hold';
  constructor(
    override readonly status: number,
    /** Number of values that memory is needed for; long values of an entry are not counted. */
    readonly values: number,
    /** Size of the response, bytes. */
    readonly bytes: number,
  ) {
    super(
      `the service answered ${status} with ${values} JSON values (${bytes} bytes), not counting results, which do not fit into memory; ask its operators what changed, or give scanfeed more memory`,
    );
  }
}

/** The page has far more entries than the interface allows. */
export class TooManyEntriesError extends ServiceError {
  readonly kind = 'too_many_entries';
  readonly action = 'hold';
  constructor(
    override readonly status: number,
    /** Number of entries of the page. */
    readonly entries: number,
    requested: number,
  ) {
    super(
      `the service answered ${status} with a page of ${entries} entries, though at most ${requested} were requested; none of them is stored; ask its operators to respect the page size (limit, interface 4.2)`,
    );
  }
}

/** The body ended early, or its compression or framing is broken. Request it again. */
export class CutBodyError extends ServiceError {
  readonly kind = 'cut_body';
  readonly action = 'retry';
  constructor(
    override readonly status: number,
    reason: string,
  ) {
    super(`the response was truncated or damaged in transit (${reason}); try again`);
  }
}
