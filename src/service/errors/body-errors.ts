import { ServiceError } from './service-error.js';

/** The answer is not JSON: another content type, HTML, 204, an empty body. Says its size and hash, never its content. */
export class NotJsonError extends ServiceError {
  readonly kind = 'not_json';
  readonly action = 'hold';
  constructor(
    override readonly status: number,
    reason: string,
    body: { readonly size: number; readonly sha256Prefix: string },
  ) {
    super(
      `the service answered ${status} with what is not JSON: ${reason} (${body.size} bytes, sha256 ${body.sha256Prefix}…); check the base URL and what stands between`,
    );
  }
}

/** The answer is JSON that does not fit the interface. Names places and fields, never values. */
export class WrongShapeError extends ServiceError {
  readonly kind = 'wrong_shape';
  readonly action = 'hold';
  constructor(
    override readonly status: number,
    /** What does not fit: `the page`, `entry 3`, … */
    readonly place: string,
    readonly fields: readonly string[],
  ) {
    super(
      `the service answered ${status}, but ${place} does not fit the interface: ${fields.join(', ')}; ask its operators what changed, or use a newer release of scanfeed`,
    );
  }
}

/** The body is over the bound on its decompressed size. Nothing of it is kept. */
export class BodyTooLargeError extends ServiceError {
  readonly kind = 'too_large';
  readonly action = 'hold';
  constructor(
    /** The bound, where it is the client's own and not its dispatcher's. */
    readonly maxBytes: number | undefined,
  ) {
    const allowed = maxBytes === undefined ? 'allowed' : `the ${maxBytes} bytes allowed`;
    super(
      `the answer is larger than ${allowed}; where it is a page of the feed, ask for fewer entries at once (SCANFEED_PAGE_LIMIT)`,
    );
  }
}

/** The answer holds more JSON values than there is memory for. None of them was made. */
export class TooManyValuesError extends ServiceError {
  readonly kind = 'too_many_values';
  readonly action = 'hold';
  constructor(
    override readonly status: number,
    /** Number of values that would have to be held; long values of an entry are not counted. */
    readonly values: number,
    readonly bytes: number,
    /** Number of entries, if it is a page of the feed. */
    readonly entries: number,
  ) {
    super(
      `the service answered ${status} with ${values} JSON values (${bytes} bytes), results not counted, more than fit into memory; ask its operators what changed, or allow scanfeed more memory`,
    );
  }
}

/** The page has far more entries than any page may have. */
export class TooManyEntriesError extends ServiceError {
  readonly kind = 'too_many_entries';
  readonly action = 'hold';
  constructor(
    override readonly status: number,
    readonly entries: number,
    asked: number,
  ) {
    super(
      `the service answered ${status} with a page of ${entries} entries, though ${asked} at most were asked for; nothing of it is stored; ask its operators to observe the page size (limit, interface 4.2)`,
    );
  }
}

/** The body ended early, or its compression or framing is broken: fetch the whole of it again. */
export class CutBodyError extends ServiceError {
  readonly kind = 'cut_body';
  readonly action = 'retry';
  constructor(
    override readonly status: number,
    reason: string,
  ) {
    super(`the answer was cut short or damaged on its way (${reason}); try again`);
  }
}
