import { addAbortSignal, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Dispatcher } from 'undici';
import type { FieldPlaces } from '../../core/json/field-places.js';
import type { JsonFacts } from '../../core/json/scan.js';
import {
  parseSkippingLargeValues,
  RepeatedField,
  type SkippableValues,
  TooManyValues,
} from '../../core/json/skip-large-values.js';
import { JsonSyntaxError } from '../../core/json/tokens.js';
import type { BodyBounds } from '../../sync/ports/index.js';
import { bodyTooLargeError, cutBodyError, notJsonError, wrongShapeError } from '../errors/body-errors.js';
import { ServiceError } from '../errors/service-error.js';

type Response = Dispatcher.ResponseData;

/** A body that is JSON. */
export interface JsonBody {
  /** Decompressed, without a byte order mark. */
  readonly body: Uint8Array;
  /** Parsed, with U+FFFD where the bytes are not UTF-8. Large values that no decision depends on are empty. */
  readonly value: unknown;
  readonly facts: JsonFacts;
  readonly places: FieldPlaces;
}

/** Maximum size of a body, and the values to skip in it. */
export interface BodyOptions extends Partial<BodyBounds> {
  readonly maxBytes: number;
  readonly skippable?: SkippableValues | undefined;
}

const DECOMPRESSORS = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/**
 * Reads a response as JSON. It takes at most `maxBytes` of memory, decompressed.
 * @throws ServiceError, or the error of the connection
 */
export async function readJson(
  response: Response,
  options: BodyOptions,
  signal: AbortSignal = new AbortController().signal,
): Promise<JsonBody> {
  const status = response.statusCode;
  const bytes = withoutByteOrderMark(await readDecompressed(response, options, signal));
  const notJson = (reason: string) => notJsonError(status, reason, bytes);
  if (bytes.length === 0) throw notJson('its body is empty');
  if (!isJsonType(header(response, 'content-type'))) throw notJson('its content type is not application/json');
  try {
    return { body: bytes, ...parseSkippingLargeValues(bytes, options.skippable) };
  } catch (error) {
    if (error instanceof TooManyValues) throw tooManyValues(status, error);
    if (error instanceof RepeatedField) throw wrongShapeError(status, 'the response', [`${error.field} (repeated)`]);
    // Such a body ends with its connection, so only its syntax shows whether it is complete.
    if (isCloseDelimited(response)) throw cutBodyError(status, `${bytes.length} bytes of incomplete JSON`);
    throw error instanceof JsonSyntaxError ? notJson(syntaxReason(bytes, error)) : error;
  }
}

/** Returns the error for a response with more JSON values than fit into memory. They were not created. */
function tooManyValues(status: number, { values, bytes }: TooManyValues): ServiceError {
  const message = `the service returned ${status} with ${values} JSON values besides the results (${bytes} bytes), too many for the memory; ask its operators what changed, or give scanfeed more memory`;
  return new ServiceError('too_many_values', 'hold', message, { status });
}

/** Returns the position of the syntax error, for the operators of the service. Never quotes the text. */
function syntaxReason(bytes: Uint8Array, { at }: JsonSyntaxError): string {
  return at === bytes.length ? 'the text ends too early' : `the syntax is invalid at byte ${at}, counted from 0`;
}

/**
 * Reads the raw bytes, with backpressure: while there is no memory for more, nothing more is read from the connection. If they
 * exceed the maximum, the connection is closed, as the rest could be endless.
 * @throws ServiceError of the kind `too_large`, or the error of the connection
 */
async function readBytes(
  { body, headers }: { readonly body: Readable; readonly headers: Response['headers'] },
  { maxBytes, expectedBytes = 0, reserve = async () => {} }: BodyOptions,
): Promise<Buffer> {
  const announced = Number(headers['content-length'] ?? 0);
  if (announced > maxBytes) {
    body.on('error', () => undefined).destroy();
    throw bodyTooLargeError(maxBytes);
  }
  let bytes = Buffer.alloc(0);
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const total = size + chunk.length;
    if (total > maxBytes) throw bodyTooLargeError(maxBytes); // leaving the loop destroys the body
    if (total > bytes.length) {
      const wanted = size === 0 ? announced || expectedBytes : 2 * size;
      const capacity = Math.min(maxBytes, Math.max(total, wanted));
      await reserve(capacity);
      // The system provides memory only for the part that is written.
      const larger = Buffer.allocUnsafeSlow(capacity);
      bytes.copy(larger, 0, 0, size);
      bytes = larger;
    }
    chunk.copy(bytes, size);
    size = total;
  }
  // A small body must not keep the memory of a large one that was expected.
  return 2 * size < bytes.length ? Buffer.from(bytes.subarray(0, size)) : bytes.subarray(0, size);
}

/**
 * Reads a body, decompressed. Compression is not requested, but a proxy may compress anyway. The body is decompressed while
 * it is received, so that its size is checked before it takes memory.
 */
async function readDecompressed(response: Response, options: BodyOptions, signal: AbortSignal): Promise<Buffer> {
  const { body, statusCode } = response;
  const encoding = header(response, 'content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding === '' || encoding === 'identity') return readBytes(response, options);
  if (!isKnownEncoding(encoding)) {
    const bytes = await readBytes(response, options);
    throw notJsonError(statusCode, 'its content encoding is unknown', bytes);
  }
  // The connection may be finished before the body is decompressed; then only the signal can end this.
  const decompressed = addAbortSignal(signal, DECOMPRESSORS[encoding]());
  let connectionError: unknown;
  const onError = (error: Error) => {
    connectionError = error;
    decompressed.destroy(error);
  };
  body.on('error', onError).pipe(decompressed);
  try {
    return await readBytes({ body: decompressed, headers: {} }, options);
  } catch (error) {
    if (error === connectionError || error instanceof ServiceError) throw error;
    throw cutBodyError(statusCode, 'its compression is broken');
  } finally {
    body.destroy();
  }
}

function isKnownEncoding(encoding: string): encoding is keyof typeof DECOMPRESSORS {
  return Object.hasOwn(DECOMPRESSORS, encoding);
}

/** Returns the value of a header; the first one if it was sent more than once. */
export function header({ headers }: Response, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

/** Accepts `application/json`, `application/…+json` and a missing content type. */
function isJsonType(contentType: string | undefined): boolean {
  return contentType === undefined || /^\s*application\/([\w.+-]+\+)?json\s*(;|$)/i.test(contentType);
}

/** Returns whether neither Content-Length nor chunks mark the end of the body. */
function isCloseDelimited(response: Response): boolean {
  return header(response, 'content-length') === undefined && header(response, 'transfer-encoding') === undefined;
}

function withoutByteOrderMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}
